"""The acting tools as a client calls them: arguments, gates, answers and what the ledger keeps."""

import json
from dataclasses import dataclass

import pytest

from nova_mcp.app import build
from nova_mcp.calls.model import CallRequest
from nova_mcp.settings import Settings

pytestmark = pytest.mark.browser
SECRET = "correct-horse-42"


@dataclass
class Client:
    nova: object
    data: object
    site: object

    async def call(self, tool, **arguments):
        answer = await self.nova.call(CallRequest(tool=f"nova.{tool}", arguments=arguments, principal="tester"))
        return answer.structured, answer.text

    async def show(self, page):
        await self.call("navigate", url=self.site.url(f"act/{page}"))
        await self.call("perceive")

    def stored(self):
        return b"".join(path.read_bytes() for path in self.data.glob("nova.db*"))


@pytest.fixture
async def client(tmp_path, site):
    uploads = tmp_path / "uploads"
    uploads.mkdir()
    (uploads / "plan.txt").write_text("plan")
    secrets = tmp_path / "secrets.toml"
    secrets.write_text(f'[shop]\nvalue = "{SECRET}"\nhosts = ["127.0.0.1"]\n')
    secrets.chmod(0o600)
    nova = await build(Settings(data_dir=tmp_path))
    client = Client(nova, tmp_path, site)
    await client.call("tab_new", url=site.url("act/choices.html"))
    await client.call("perceive")
    yield client
    await nova.close("test over")


async def test_choosing_answers_with_both_states_and_refuses_models_without_a_contract(client):
    told, text = await client.call("choose_option", selector="#size", text="Large")
    assert (told["controlKind"], told["before"], told["after"], told["optionCount"]) == (
        "select",
        "Choose one",
        "Large",
        5,
    )
    assert '"Choose one" → "Large"' in text
    again, _ = await client.call("choose_option", selector="#size", text="Large")
    assert (again["ok"], again["alreadySet"], again["actionDispatched"]) == (True, True, False)
    refused, _ = await client.call("choose_option", selector="#model", text="Thorough")
    assert (refused["reasonCode"], refused["commitKind"]) == ("guarded_commit.missing_contract", "switch_model")
    assert refused["suggestedTool"] == "nova.guarded_switch_model"
    proven, _ = await client.call("choose_option", selector="#model", text="Thorough", expect=["value:#model=Thorough"])
    assert (proven["status"], proven["guardedCommit"]["verificationStatus"]) == ("ok", "verified_success")


async def test_a_missing_option_lists_what_there_is(client):
    told, _ = await client.call("choose_option", selector="#size", text="Huge")
    assert (told["errorCode"], told["reasonCode"], len(told["options"])) == (-32004, "option.not_found", 5)
    assert told["actionDispatched"] is False


async def test_keys_answer_with_the_focus_and_keep_to_the_page(client):
    await client.show("keys.html")
    told, _ = await client.call("input_key", selector="#one", key="tab", repeat=2)
    assert '"Three"' in told["focusedElement"]
    window, _ = await client.call("input_key", key="Control+W")
    assert (window["errorCode"], window["reasonCode"], window["stage"]) == (-32602, "key.not_allowed", "validate")
    refused, _ = await client.call("input_key", selector="#field", key="Enter")
    assert refused["reasonCode"] == "guarded_commit.missing_contract"
    sent, _ = await client.call("input_key", selector="#field", key="Enter", expect=["gone:#nowhere"], intentKey="one")
    assert sent["actionDispatched"] is True


async def test_hovering_tells_what_appeared_in_words_too(client):
    await client.show("hover.html")
    told, text = await client.call("hover", selector="#menu")
    assert (told["verifyState"], len(told["revealed"])) == ("verified", 2)
    assert all(line in text for line in told["revealed"])


async def test_files_are_told_without_their_folders_anywhere(client):
    await client.show("upload.html")
    folder = str(client.data / "uploads")
    told, text = await client.call("file_upload", selector="#one", paths=[f"{folder}/plan.txt"])
    assert told["accepted"] is True
    assert [(file["fileName"], file["bytes"]) for file in told["files"]] == [("plan.txt", 4)]
    outside, _ = await client.call("file_upload", selector="#one", paths=["/etc/hostname"])
    assert (outside["errorCode"], outside["reasonCode"]) == (-32035, "upload.path_not_allowed")
    assert folder not in json.dumps(told) + text
    assert folder.encode() not in client.stored()


async def test_a_secret_is_typed_by_name_and_its_value_is_nowhere(client):
    await client.show("keys.html")
    told, text = await client.call("type_selector_secret", selector="#one", secretName="shop")
    assert (told["valueMatches"], told["secretName"], told["verifyState"]) == (True, "shop", "verified")
    refused, other = await client.call("type_selector_secret", selector="#field", secretName="shop", pressEnter=True)
    assert refused["reasonCode"] == "guarded_commit.missing_contract"
    seen, page = await client.call("perceive")
    missing, _ = await client.call("type_selector_secret", selector="#one", secretName="nobody")
    assert missing["reasonCode"] == "secret.not_found"
    assert SECRET not in json.dumps([told, refused, seen, missing]) + text + other + page
    assert SECRET.encode() not in client.stored()
