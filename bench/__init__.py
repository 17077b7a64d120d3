"""Measurements that print tables; nothing here is a test."""
