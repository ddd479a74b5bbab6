/** Whose words are commands (gateway rule R6, promises S7, X10). */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { SessionSend } from "../ports/session.ts";
import { execMessage, takeIn } from "./intake.ts";

const said = (more: Partial<SessionSend>): string => {
  const taken = takeIn(
    {
      identity: { key: "agent:main:test:group:g", ref: "r", agentId: "main", isOwnersSession: false },
      messageId: "m",
      runId: "run-m",
      text: "[message] {}\n/stop",
      origin: { kind: "channel", channel: "test", accountId: "default", senderId: "x", role: "owner" },
      ...more,
    },
    0,
  );
  assert.ok(taken.ok, JSON.stringify(taken));
  const { value } = taken;
  return value.kind === "message" ? `message ${JSON.stringify(value.incoming.message.content)}` : value.kind;
};
const TEXT = 'message "[message] {}\\n/stop"';

test("[S7][X10] text of other people is never a command", () => {
  assert.equal(said({ verbatim: true }), TEXT);
  assert.equal(said({ verbatim: true, text: "/stop" }), 'message "/stop"');
});
test("[R6] the owner's commands work in groups; any other text is sent with its head", () => {
  assert.equal(said({ verbatim: true, command: "/stop" }), "command");
  assert.equal(said({ verbatim: true, command: "/compact nonsense" }), "bad-command");
  for (const words of ["stop", "", "/status of the house?", "/t:high think about it", "please /stop"])
    assert.equal(said({ verbatim: true, command: words }), TEXT);
});
test("[WB8] the owner's /steer is a message for the run, with its head and without the command; a guest's is refused", () => {
  const steered = (more: Partial<SessionSend>): unknown => {
    const taken = takeIn(
      {
        identity: { key: "agent:main:test:group:g", ref: "r", agentId: "main", isOwnersSession: false },
        messageId: "m",
        runId: "run-m",
        text: "[message] {}\n/steer use tabs",
        verbatim: true,
        command: "/steer use tabs",
        origin: { kind: "channel", channel: "test", accountId: "default", senderId: "x", role: "owner" },
        ...more,
      },
      0,
    );
    assert.ok(taken.ok, JSON.stringify(taken));
    const { value } = taken;
    return value.kind === "message" ? [value.steer, value.incoming.message.content] : value.kind;
  };
  assert.deepEqual(steered({}), [true, "[message] {}\nuse tabs"]);
  assert.deepEqual(steered({ text: "[message] {}\n> /steer use  tabs" }), [true, "use tabs"]);
  assert.deepEqual(steered({ command: "please /steer it" }), [undefined, "[message] {}\n/steer use tabs"]);
  assert.equal(steered({ byGuest: true }), "bad-command");
  assert.equal(steered({ command: "/steer" }), "bad-command");
  assert.deepEqual(steered({ quiet: true }), [undefined, "[message] {}\n/steer use tabs"]);
});
test("[F44] on a channel, an unknown command is answered and not sent; a path is text", () => {
  for (const words of ["/unknown", "/Stauts now"]) assert.equal(said({ verbatim: true, command: words }), "bad-command");
  for (const words of ["/etc/hosts is wrong", "/", "/2 of it", "/model:x/y hello"])
    assert.equal(said({ verbatim: true, command: words }), TEXT);
  // A client asks the person itself (`gsv chat`).
  assert.equal(said({ text: "/unknown" }), 'message "/unknown"');
});
test("[P2] a quiet message is never a command, from any sender", () => {
  assert.equal(said({ quiet: true, text: "/stop" }), 'message "/stop"');
  assert.equal(said({ quiet: true, verbatim: true, command: "/stop" }), TEXT);
});

test("[F77] [W14] the same event of two nodes is two messages", () => {
  const event = { eventId: "p1:ended", sessionId: "p1", event: "finished" } as const;
  const messages = ["lap", "box"].map((nodeId) => execMessage(nodeId, event, "run", 0));
  assert.equal(new Set(messages.map(({ messageId }) => messageId)).size, 2);
  assert.deepEqual(
    messages.map(({ origin }) => origin),
    [
      { kind: "node_event", nodeId: "lap" },
      { kind: "node_event", nodeId: "box" },
    ],
  );
});
