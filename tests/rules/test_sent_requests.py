"""Which requests count as an action's doing: a pure decision over what the host saw."""

from nova_mcp.browser.observe.host_window import RequestSeen
from nova_mcp.browser.observe.request_attribution import Backdrop, Pressed, sent_requests, since_press

PAGE = "https://shop.example/cart"


def request(method="POST", path="/api/order", *, at=10.0, kind="fetch", host="shop.example", **more):
    return RequestSeen(method, f"https://{host}{path}", path, kind, at, **more)


def sent(*requests, before=0, backdrop=None, **pressed):
    return sent_requests(requests, Pressed(before, **pressed), backdrop or Backdrop(PAGE))


def test_a_request_of_the_same_site_counts_and_reports():
    for host in ("shop.example", "api.shop.example"):
        (found,) = sent(request(host=host))
        assert (found.mutating, found.pending, found.reports) == (True, True, True)


def test_pings_and_beacons_never_report_and_other_sites_only_where_the_own_one_is_not_spoken_to():
    for seen in (request(kind="ping"), request(kind="beacon")):
        assert [found.reports for found in sent(seen)] == [False]
    stats = request(host="stats.example")
    assert [found.reports for found in sent(stats)] == [True]
    assert [found.reports for found in sent(stats, request())] == [False, True]
    assert [found.reports for found in sent(stats, request("GET"))] == [True, True]


def test_a_main_document_reports_wherever_it_is_sent():
    (found,) = sent(request(kind="document", host="pay.example", main_document=True))
    assert found.reports


def test_what_was_read_or_refused_before_the_press_is_left_out_later_too():
    assert sent(request("GET", status=200), request("GET"), before=1) == ()
    assert sent(request(status=500), request(), before=1) == ()
    assert len(sent(request(status=200), request(), before=1)) == 1


def test_documents_are_never_taken_for_a_habit():
    seen = request(kind="document", path="/cart", main_document=True)
    assert len(sent(seen, seen, before=1)) == 1


def test_a_path_the_page_polls_may_carry_the_action_too():
    polled = Backdrop(PAGE, recent_paths=frozenset({"/api/order"}))
    assert len(sent(request(), backdrop=polled)) == 1
    assert sent(request("GET"), backdrop=polled) == ()


def test_a_pending_request_of_a_document_that_is_gone_will_not_report():
    old, new = request(at=10.0), request(path="/api/new", at=30.0)
    assert [found.reports for found in sent(old, new, committed_ms=20.0)] == [False, True]
    assert [found.reports for found in sent(request(at=10.0, status=200), committed_ms=20.0)] == [True]


def test_a_load_that_became_a_file_was_answered():
    seen = request("GET", "/bill.pdf", kind="document", main_document=True, failed=True)
    (found,) = sent(seen, saved_urls=(seen.url,))
    assert (found.status, found.failed) == (200, False)
    (found,) = sent(seen)
    assert (found.status, found.failed) == (None, True)


def test_every_request_since_the_press_is_there_for_facts_about_responses():
    seen = (request(status=200), request(status=500))
    assert [found.status for found in since_press(seen, Pressed(1), Backdrop(PAGE))] == [500]
