"""Every page of the dashboard, by the address at which the filled store has something to show there."""

from filled import COMMIT

PAGES = (
    "/",
    "/calls",
    "/calls?tool=click_selector&intents=1",
    f"/calls/{COMMIT}",
    "/calls/call-hostile",
    "/calls/call-nowhere",
    "/receipts",
    "/receipts?verdict=verified_fail",
    "/statistics",
    "/statistics?window=30d",
    "/questions",
    "/controls",
    "/controls/stop",
    "/controls/resume",
    "/controls/switch?family=apply&host=shop.example&note=because",
)
