/** The label of the conversation: what raises it, and the two things that lower it. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Taint, TaintLabel } from "../../../ports/taint.ts";
import { checkStep } from "../invariants.ts";
import type { LogRow } from "../log.ts";
import type { IncomingMessage } from "../state.ts";
import { Bench, CALL, call, LAP } from "../../../../test/session/machine-bench.ts";

const of = (label: TaintLabel, source = `something of ${label}`): Taint => ({ label, source });
const guest: Partial<IncomingMessage> = {
  origin: { kind: "channel", channel: "whatsapp", accountId: "default", senderId: "ada", role: "guest" },
};
const label = (b: Bench): TaintLabel => b.state.taint?.label ?? "owner";
/** A conversation that has read a result of `taint`. */
function heard(taint: Taint): Bench {
  const b = new Bench();
  b.say("a");
  b.reply("", [call({ taint })]);
  b.result(CALL, "out");
  b.reply("well");
  return b;
}
/** A reset of which the archive is still to come. */
function resetting(b: Bench): Bench {
  b.apply({ type: "Reset" });
  return b;
}
function finishReset(b: Bench): void {
  b.archive();
  if (b.state.run.phase === "archiving") b.summarize();
}

describe("[TA2] the label of a conversation", () => {
  test("is the owner's until it reads something of others; a plain message adds nothing to its rows", () => {
    const b = new Bench();
    b.say("a");
    b.reply("well");
    assert.equal(b.state.taint, undefined);
    assert.doesNotMatch(JSON.stringify(b.log) + JSON.stringify(b.state), /taint/);
  });
  test("rises with messages, quiet ones and those of the queue too, and never falls", () => {
    const b = new Bench();
    b.say("q", { ...guest, quiet: true });
    assert.deepEqual(b.state.taint, of("peer", "a message of ada on whatsapp"));
    b.say("a");
    b.say("waits", { taint: of("world", "a forwarded message") });
    assert.equal(label(b), "peer");
    b.reply("one");
    assert.deepEqual(b.state.taint, of("world", "a forwarded message"));
    b.reply("two");
    b.say("g", guest);
    assert.equal(label(b), "world");
    assert.deepEqual(
      b.log.flatMap((row) => (row.kind === "user" ? [row.taint] : [])),
      ["peer", undefined, "world", "peer"],
    );
  });
  test("rises with results, by the call's label or the tool's own word; nothing known is world", () => {
    assert.equal(label(heard(of("self"))), "self");
    assert.deepEqual(heard(of("world", "the output of lap__Bash")).state.taint, of("world", "the output of lap__Bash"));
    const unknown = new Bench();
    unknown.say("a");
    unknown.reply("", [call()]);
    unknown.result(CALL, "out");
    assert.deepEqual(unknown.state.taint, of("world", "the output of lap__Bash"));
    const said = new Bench();
    said.say("a");
    said.reply("", [call({ taint: of("world") })]);
    said.apply({ type: "ToolResult", callId: CALL, from: LAP, content: [], outcome: "ok", taint: of("self") });
    assert.equal(label(said), "self");
  });
  test("[TA17] rises with no error or empty result of a machine's own tool for files, and with those of every other tool", () => {
    const failed = (isFileTool: boolean): Bench => {
      const b = new Bench();
      b.say("a");
      b.reply("", [call({ taint: of("files"), ...(isFileTool ? { isFileTool } : {}) }, "lap__Read")]);
      b.apply({
        type: "ToolResult",
        callId: CALL,
        from: LAP,
        content: [{ type: "text", text: "there is no a" }],
        outcome: "error",
        reason: "path.not_found",
        gaveNothing: true,
      });
      return b;
    };
    assert.equal(label(failed(true)), "self");
    assert.equal(label(failed(false)), "files");
  });
  test("[TA3] rises with a late result and with the end of a process, by the call that they belong to", () => {
    const b = new Bench();
    b.say("a");
    b.reply("", [call({ taint: of("world", "the output of lap__Bash") })]);
    b.apply({ type: "Abort" });
    assert.equal(label(b), "owner");
    b.result(CALL, "late");
    assert.equal(b.state.taint?.source, "the output of lap__Bash");

    const process = new Bench();
    process.say("a");
    process.reply("", [call({ taint: of("self") })]);
    process.apply({ type: "ToolResult", callId: CALL, from: LAP, content: [], outcome: "ok", processId: "p1" });
    process.reply("it runs");
    const incoming: IncomingMessage = {
      messageId: "exec",
      runId: "run-exec",
      origin: { kind: "node_event", nodeId: "lap" },
      message: { role: "user", content: "ended", timestamp: 0 },
      directives: {},
    };
    process.apply({ type: "ExecEnded", nodeId: "lap", processId: "p1", incoming, bytes: 10 });
    assert.equal(label(process), "self");
  });
  test("stays through a compaction", () => {
    const b = heard(of("world"));
    b.say("b");
    b.full(b.plan(b.log.findLast((row) => row.kind === "user")?.seq ?? 0));
    b.summarize();
    b.archive();
    assert.equal(b.state.compactions, 1);
    assert.deepEqual(b.state.taint, of("world"));
  });
  test("ends with a reset, but for what came since it began", () => {
    const b = resetting(heard(of("world")));
    finishReset(b);
    assert.equal(b.state.taint, undefined);

    const late = new Bench();
    late.say("a");
    late.reply("", [call({ taint: of("peer", "a late result") })]);
    late.apply({ type: "Abort" });
    late.say("b", { taint: of("world") });
    late.reply("well");
    resetting(late);
    late.result(CALL, "late");
    assert.equal(label(late), "world");
    finishReset(late);
    assert.deepEqual(late.state.taint, of("peer", "a late result"));
    assert.equal(late.state.messageCount, 0);
  });
  test("a message that waits for a reset has its label in the fresh conversation", () => {
    const b = resetting(heard(of("world")));
    b.say("g", guest);
    finishReset(b);
    assert.equal(label(b), "peer");
  });
});

describe("[TA8] the owner's word", () => {
  test("clears the label, in any phase, and what comes later raises it again", () => {
    const b = heard(of("world"));
    assert.deepEqual(b.apply({ type: "Trusted", text: "From now on ..." }).answer, { type: "patched" });
    assert.equal(b.state.taint, undefined);
    assert.deepEqual(b.notices(), ["settings:"]);
    b.say("g", guest);
    assert.equal(label(b), "peer");
    b.apply({ type: "Trusted", text: "From now on ..." });
    assert.equal(label(b), "owner");
  });
  test("during a reset it also clears what came since it began", () => {
    const b = new Bench();
    b.say("a");
    b.reply("", [call({ taint: of("world") })]);
    b.apply({ type: "Abort" });
    resetting(b);
    b.result(CALL, "late");
    b.apply({ type: "Trusted", text: "From now on ..." });
    finishReset(b);
    assert.equal(b.state.taint, undefined);
  });
});

test("[TA2] a step that lowers the label, or does not raise it to that of a row, breaks an invariant", () => {
  const { state } = heard(of("world"));
  const step = { ...new Bench().apply({ type: "Noted", text: "x" }), cause: "Noted", append: [] } as const;
  const { taint: _gone, ...clean } = { ...state, nextSeq: state.nextSeq };
  assert.throws(() => checkStep(state, { ...step, state: clean }), /the label fell from world to owner/);
  assert.doesNotThrow(() => checkStep(state, { ...step, cause: "Trusted", state: clean }));
  const row: LogRow = { seq: clean.nextSeq, at: 0, runId: "", kind: "notice", notice: "note", text: "x", forModel: "x", taint: "world" };
  const outbox = [{ type: "Deliver", id: "d", upto: clean.nextSeq }] as const;
  const added = { ...clean, nextSeq: clean.nextSeq + 1, outbox };
  assert.throws(() => checkStep(clean, { ...step, append: [row], state: added }), /a row of world in a conversation of owner/);
});
