"""What a conversation over its budget keeps, and what gives way first."""

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.agent.compaction import Compaction, applied, compact, size
from holdfast.agent.conversation import Conversation, encode
from holdfast.context.tokens import count_tokens
from holdfast.domain.ports import ModelReply, ToolCall, ToolSpec

TOOL = ToolSpec(name="read_file", description="", parameters={}, effect="pure")


def talk(*rounds: tuple[str, str, str]) -> Conversation:
    """Rounds of (said, a text argument, seen)."""
    spoken = Conversation(model="x", seed=7, tools=[TOOL], system="be", user="do it")
    for number, (said, given_, seen) in enumerate(rounds):
        arguments = encode({"path": "a", "text": given_, "line": 3}).decode()
        call = ToolCall(id=str(number), name="read_file", arguments=arguments)
        spoken.assistant(ModelReply(text=said, calls=(call,)), [call], f"t{number}/model")
        spoken.observe([(call, seen, f"t{number}/call:0")])
    return spoken


def lines(word: str, count: int) -> str:
    return "\n".join(f"{word} {number}" for number in range(count))


def test_the_oldest_tool_results_give_way_first_and_say_so() -> None:
    spoken = talk(*[(f"look {n}", "x", lines(f"seen{n}", 200)) for n in range(6)])
    made = compact(spoken.whole, spoken.origins, budget_tokens=2400)
    assert made is not None
    shown = applied(spoken.whole, made)
    results = [message.content for message in shown if message.role == "tool"]
    assert [message.content for message in shown if message.role == "assistant"] == [
        f"look {n}" for n in range(6)
    ], "turns stay while results can give way"
    assert results[-1] == spoken.whole[-1].content
    assert "lines left out" in results[0]
    assert results[0].startswith("seen0 0\n"), "the ends are kept"
    sizes = [count_tokens(result) for result in results]
    assert sizes == sorted(sizes), "the older, the shorter"
    assert made.before == sum(map(size, spoken.whole))
    assert made.after == sum(map(size, shown))


def test_old_turns_give_way_next_and_arguments_with_them() -> None:
    spoken = talk(*[(lines("I think", 80), lines("write", 80), "ok") for _ in range(6)])
    made = compact(spoken.whole, spoken.origins, budget_tokens=1200)
    assert made is not None
    assert {"2", "2/0/text"} <= set(made.short)
    first = applied(spoken.whole, made)[2]
    assert "lines left out" in first.content
    assert '"line":3' in first.calls[0].arguments, "what is no text stays"
    assert "lines left out" in first.calls[0].arguments


def test_nothing_gives_way_in_the_bundle_and_the_last_round() -> None:
    spoken = talk(("look", "x", lines("seen", 500)))
    assert compact(spoken.whole, spoken.origins, budget_tokens=10) is None


def test_a_text_that_was_cut_before_is_cut_from_its_whole_again() -> None:
    spoken = talk(*[("look", "x", lines(f"seen{n}", 100)) for n in range(5)])
    first = compact(spoken.whole, spoken.origins, budget_tokens=1500)
    assert first is not None
    spoken.shorten(applied(spoken.whole, first), "t1/compact")
    again = compact(spoken.whole, spoken.origins, budget_tokens=800)
    assert again is not None
    cut = applied(spoken.whole, again)
    assert all(message.content.count("left out") <= 1 for message in cut)
    assert "100 lines" in cut[3].content


def test_a_delta_names_the_compaction_once() -> None:
    spoken = talk(*[("look", "x", lines("seen", 100)) for _ in range(5)])
    spoken.delta()
    made = compact(spoken.whole, spoken.origins, budget_tokens=500)
    assert made is not None
    spoken.shorten(applied(spoken.whole, made), "t006/compact")
    assert spoken.delta() == b'{"after":12,"messages":[],"shortened":"t006/compact"}'
    spoken.take_back()
    assert b"t006/compact" in spoken.delta(), "who is asked instead must hear of it"
    assert spoken.delta() == b'{"after":12,"messages":[]}'
    assert spoken.request().messages == tuple(applied(spoken.whole, made))


texts = st.text(st.sampled_from("ab é\n漢{\"'"), max_size=400)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(texts, texts, texts), min_size=3, max_size=9),
    st.integers(min_value=1, max_value=600),
)
def test_a_compaction_only_shortens_and_survives_its_encoding(
    rounds: list[tuple[str, str, str]], budget: int
) -> None:
    spoken = talk(*rounds)
    made = compact(spoken.whole, spoken.origins, budget_tokens=budget)
    if made is None:
        return
    shown = applied(spoken.whole, made)
    assert [message.role for message in shown] == [message.role for message in spoken.whole]
    assert all(size(now) <= size(was) + 2 for now, was in zip(shown, spoken.whole, strict=True))
    assert made.after < made.before
    assert made == compact(spoken.whole, spoken.origins, budget_tokens=budget)
    assert isinstance(made, Compaction)
