/** The rules of open tool calls, one situation a test. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { LIMITS } from "../../../protocol/gen/limits.ts";
import type { ToolTarget } from "../ports/tool-target.ts";
import { cancelled, neverStarted } from "./closings.ts";
import { type Closing, dueAt, isRepeatable, nodeOf, type OpenCall, planCall, sameTarget } from "./open-call.ts";
import {
  expired,
  handingOver,
  handOverUncertain,
  interrupted,
  mayReport,
  nodeConnected,
  nodeOffline,
  nodeDisconnected,
  type Ruling,
} from "./rules.ts";

const NATIVE: ToolTarget = { kind: "native" };
const LAP: ToolTarget = { kind: "node", nodeId: "lap" };
const GRACE = LIMITS.nodeGraceMs;
const AT = 1_000;
const DEADLINE_MS = 600_000;

interface Kind {
  readonly target?: ToolTarget;
  readonly ledger?: boolean;
  readonly idempotent?: boolean;
}
const planned = ({ target = LAP, ledger = false, idempotent = false }: Kind = {}): OpenCall =>
  planCall({ callId: "ref/r1/1/0", index: 0, name: "lap__Bash", target, ledger, idempotent, deadlineMs: DEADLINE_MS }, AT);
const going = (ruling: Ruling): OpenCall => {
  assert.ok(ruling.type === "continue" || ruling.type === "hand_over", ruling.type);
  return ruling.call;
};
const closed = (ruling: Ruling): Closing => {
  assert.equal(ruling.type, "close");
  return ruling.type === "close" ? ruling.closing : assert.fail();
};
/** Handed over, to a node without a ledger unless said otherwise. */
const out = (kind: Kind = {}): OpenCall => {
  const call = planned(kind);
  return call.status === "planned" ? going(handingOver(call)) : call;
};
const inGrace = (kind: Kind = {}): OpenCall => going(nodeDisconnected(out(kind), AT));
const LEDGER = { ledger: true } as const;
const READ_ONLY = { idempotent: true } as const;

describe("planning and handing over", () => {
  test("[G2] only a call that may be handed over once is planned; any other counts as dispatched from the start", () => {
    assert.equal(planned().status, "planned");
    for (const kind of [LEDGER, READ_ONLY, { target: NATIVE }]) {
      assert.equal(planned(kind).status, "dispatched");
      assert.equal(isRepeatable(planned(kind)), true);
    }
    assert.equal(isRepeatable(planned()), false);
    assert.equal(dueAt(planned()), AT + DEADLINE_MS);
  });

  test("[G2] the hand-over of a planned call is committed once", () => {
    const call = going(handingOver(planned()));
    assert.equal(call.status, "dispatched");
    assert.deepEqual(handingOver(call), { type: "unchanged" });
    assert.deepEqual(handingOver(out(LEDGER)), { type: "unchanged" });
  });

  test("[G1] only the target that has the call may report its result", () => {
    assert.equal(mayReport(out(), LAP), true);
    assert.equal(mayReport(inGrace(), LAP), true);
    assert.equal(mayReport(planned(), LAP), false, "nothing was handed over yet");
    assert.equal(mayReport(out(), { kind: "node", nodeId: "box" }), false);
    assert.equal(mayReport(out(), NATIVE), false);
    assert.equal(mayReport(out({ target: NATIVE }), LAP), false);
    assert.equal(sameTarget(NATIVE, { kind: "native" }), true);
    assert.equal(nodeOf(out()), "lap");
    assert.equal(nodeOf(out({ target: NATIVE })), undefined);
  });
});

describe("a node that disconnects", () => {
  test("[G3] offline at the first hand-over: not run, whatever the tool does", () => {
    for (const kind of [{}, LEDGER, READ_ONLY]) {
      const closing = closed(nodeOffline(out(kind), { first: true }, AT));
      assert.equal(closing.reason, "node.offline");
      assert.equal(closing.outcome, "error");
      assert.equal(closing.mayReportLate, false);
      assert.match(closing.text, /^The machine lap is not connected, so lap__Bash was not run\./);
    }
  });

  test("[G3] offline at a later hand-over: read-only calls fail, any other waits in grace", () => {
    assert.equal(closed(nodeOffline(out(READ_ONLY), { first: false }, AT)).reason, "node.offline");
    assert.equal(dueAt(going(nodeOffline(out(LEDGER), { first: false }, AT))), AT + GRACE);
  });

  test("[G3] [W5] the link breaks: read-only calls fail at once, any other waits in grace", () => {
    for (const ledger of [false, true]) assert.equal(closed(nodeDisconnected(out({ ledger, ...READ_ONLY }), AT)).reason, "node.offline");
    for (const ledger of [false, true]) {
      const call = going(nodeDisconnected(out({ ledger }), AT));
      assert.equal(call.status, "in_grace");
      assert.equal(dueAt(call), AT + GRACE);
    }
    assert.deepEqual(nodeDisconnected(planned(), AT), { type: "unchanged" }, "the hand-over will find the node offline");
  });

  test("[P6] a hand-over with an unknown outcome puts the call in grace", () => {
    assert.equal(dueAt(going(handOverUncertain(out(), AT))), AT + GRACE);
  });

  test("[G3] what happens during the grace does not make it longer", () => {
    const call = inGrace();
    assert.deepEqual(nodeDisconnected(call, AT + 5), { type: "unchanged" });
    assert.deepEqual(handOverUncertain(call, AT + 5), { type: "unchanged" });
    assert.deepEqual(nodeOffline(call, { first: false }, AT + 5), { type: "unchanged" });
  });
});

describe("a node that comes back", () => {
  const seen = (state: "accepted" | "started" | "finished" | "lost") => [{ callId: "ref/r1/1/0", state }];

  test("[G3] without a ledger nothing changes: only a result ends the grace", () => {
    assert.deepEqual(nodeConnected(inGrace(), undefined, AT), { type: "unchanged" });
    assert.deepEqual(nodeConnected(inGrace(LEDGER), undefined, AT), { type: "unchanged" });
    assert.deepEqual(
      nodeConnected(inGrace(), seen("started"), AT),
      { type: "unchanged" },
      "the call was handed to a node without a ledger",
    );
  });

  test("[K14] [K15] a call that the node never saw or never started is handed over again", () => {
    for (const ledger of [[], seen("accepted"), [{ callId: "ref/r1/1/1", state: "started" as const }]])
      for (const call of [out(LEDGER), inGrace(LEDGER)]) {
        const ruling = nodeConnected(call, ledger, AT);
        assert.equal(ruling.type, "hand_over");
        assert.deepEqual(going(ruling), { ...out(LEDGER), dispatch: 1 });
      }
  });

  test("[K16] [K18] a call that still runs or has ended continues with its own deadline", () => {
    for (const state of ["started", "finished"] as const) {
      assert.deepEqual(going(nodeConnected(inGrace(LEDGER), seen(state), AT)), out(LEDGER));
      assert.deepEqual(nodeConnected(out(LEDGER), seen(state), AT), { type: "unchanged" });
    }
  });

  test("[K16'] a call whose node died waits in grace, which does not get longer", () => {
    assert.equal(dueAt(going(nodeConnected(out(LEDGER), seen("lost"), AT))), AT + GRACE);
    assert.equal(dueAt(going(nodeConnected(inGrace(LEDGER), seen("lost"), AT + 7))), AT + GRACE);
  });

  test("a caller that can't hand over again says that the call never started", () => {
    const closing = neverStarted(inGrace(LEDGER));
    assert.equal(closing.reason, "node.offline");
    assert.match(closing.text, /did not reach lap/);
  });
});

describe("time", () => {
  test("[G5] a call does not end before its deadline", () => {
    assert.equal(expired(out(), AT + DEADLINE_MS - 1), undefined);
    assert.equal(expired(inGrace(), AT + GRACE - 1), undefined);
  });

  test("[G5] at its deadline a read-only call ends with a timeout", () => {
    for (const call of [planned(), out(READ_ONLY)]) {
      const closing = expired(call, AT + DEADLINE_MS);
      assert.equal(closing?.reason, "tool.timeout");
      assert.equal(closing?.outcome, "timeout");
      assert.match(closing?.text ?? "", /within 600 s\. It changed nothing/);
    }
  });

  test("[G5] at its deadline a native call ends with a timeout that warns of a possible effect", () => {
    const closing = expired(out({ target: NATIVE, ...READ_ONLY }), AT + DEADLINE_MS);
    assert.equal(closing?.reason, "tool.timeout");
    assert.match(closing?.text ?? "", /within 600 s\. It may have taken effect/);
  });

  test("[G5] [P6] at its deadline any other call has an unknown outcome", () => {
    for (const call of [out(), out(LEDGER), out({ target: NATIVE })]) {
      const closing = expired(call, AT + DEADLINE_MS);
      assert.equal(closing?.reason, "tool.outcome_unknown");
      assert.equal(closing?.mayReportLate, true);
    }
  });

  test("[G3] [P6] after the grace the outcome is unknown", () => {
    const closing = expired(inGrace(LEDGER), AT + GRACE);
    assert.equal(closing?.outcome, "unknown");
    assert.match(closing?.text ?? "", /^The connection to lap broke while lap__Bash was running\./);
  });

  test("[G5] a deadline inside the grace counts as the deadline", () => {
    const call = going(nodeDisconnected(out(), AT + DEADLINE_MS - 10));
    assert.equal(dueAt(call), AT + DEADLINE_MS);
    assert.match(expired(call, AT + DEADLINE_MS)?.text ?? "", /gave no result within 600 s/);
  });
});

describe("interruption and cancelling", () => {
  test("[P8] a native call runs again after each interruption, up to a limit", () => {
    let call = out({ target: NATIVE });
    for (let times = 0; times < LIMITS.recoveryAttempts; times++) call = going(interrupted(call));
    const closing = closed(interrupted(call));
    assert.equal(closing.reason, "tool.failed");
    assert.match(closing.text, new RegExp(`interrupted ${LIMITS.recoveryAttempts} times`));
  });

  test("[P8] the session's interruption does not touch calls on nodes", () => {
    for (const call of [planned(), out(), out(LEDGER), inGrace()]) assert.deepEqual(interrupted(call), { type: "unchanged" });
  });

  test("[P14] a cancelled call may still report a result", () => {
    assert.deepEqual(cancelled("Stopped by the user."), {
      outcome: "cancelled",
      reason: "tool.cancelled",
      text: "Cancelled: Stopped by the user.",
      mayReportLate: true,
    });
  });
});
