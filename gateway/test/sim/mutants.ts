/**
 * Mutants: deliberate mistakes, each one change of the text of one file. The simulation must find every one, or it proves less than it
 * seems to. `find` must occur exactly once, so that a mutant can't silently become no change.
 */
import type { HuntName } from "./hunt.ts";

export interface Mutant {
  readonly name: string;
  /** From `gateway/`. */
  readonly file: string;
  readonly find: string;
  readonly put: string;
  /** The hunt that finds it, if that is not one of the first: begun with, it finds the mistake in seconds. */
  readonly first?: HuntName;
}
const machine = (name: string): string => `src/session/machine/${name}.ts`;

export const MUTANTS: readonly Mutant[] = [
  {
    name: "[P1] [W3] a repeated message id is not looked up",
    file: "src/session/apply.ts",
    find: "if (earlier) return",
    put: "if (earlier && false) return",
  },
  {
    name: "[P12] [W1] what an earlier incarnation left open is not started again",
    file: "src/session/pump.ts",
    find: "for (const effect of this.#ports.outbox()) if (this.#isDue",
    put: "for (const effect of this.#ports.outbox()) if (!this.#inherited.has(effect.id) && this.#isDue",
  },
  { name: "[P12] no alarm is ever set", file: "src/session/driver.ts", find: "    this.#host.setAlarm(wall);", put: "" },
  {
    name: "[P5] the completion of an earlier attempt is taken",
    file: machine("phase/thinking"),
    find: 'return run.phase === "thinking" && modelEffectId(run) === effectId ? run : undefined;',
    put: 'return run.phase === "thinking" && run.attempt > 0 ? { ...run, attempt: run.attempt - 1 } : run.phase === "thinking" ? run : undefined;',
  },
  {
    name: "[P6] [G2] a call is handed to a node without a ledger again",
    file: "src/session/effects/dispatch-tool.ts",
    find: "if (!effect.repeatable) {",
    put: "if (!effect.repeatable && false) {",
  },
  {
    name: "[P6] the node forgets what it has accepted",
    file: "test/sim/nodes.ts",
    find: "if (known && this.ledger) {",
    put: "if (known && this.ledger && false) {",
  },
  {
    name: "[G3] a call that may have started is said never to have run",
    file: "src/session/effects/dispatch-tool.ts",
    find: '!flight.inherited && flight.tries === 0 && effect.id.endsWith(".0")',
    put: 'effect.id !== "" && flight.tries >= 0',
  },
  {
    name: "[G3] [W5] a changing call is failed at once when its node drops off",
    file: "src/calls/rules.ts",
    find: "if (call.idempotent) return close(closings.linkBroke(call));\n  // The",
    put: 'if (call.callId !== "") return close(closings.linkBroke(call));\n  // The',
  },
  { name: "[P7] [W5] a late result is dropped", file: machine("phase/acting"), find: "    lateNote(d, closed, event);", put: "" },
  {
    name: "[W7] a result of another machine is taken",
    file: "src/calls/rules.ts",
    find: " && sameTarget(call.target, from)",
    put: "",
  },
  {
    name: "[P10] [W9] waiting messages are forgotten when a run ends",
    file: machine("phase/queue"),
    find: "if (d.atNext) startNext(d);",
    put: "d.state.queue = { count: 0, bytes: 0 };",
  },
  {
    name: "[P3] a message that comes during a run overtakes",
    file: machine("phase/queue"),
    find: "if (isFree && reset === undefined) {",
    put: "if (reset === undefined) {",
  },
  {
    name: "[P14] a stopped session starts what comes",
    file: machine("phase/queue"),
    find: 'const isFree = state.run.phase === "idle" && !state.held;',
    put: 'const isFree = state.run.phase === "idle";',
  },
  {
    name: "[P3] the queue is a stack",
    file: "test/sim/memory-store.ts",
    find: "for (const stored of this.#queued()) {",
    put: "for (const stored of this.#queued().reverse()) {",
  },
  {
    name: "[P2] what is only to be known is lost when it waits in front of nothing else",
    file: machine("phase/queue"),
    find: "    takeOff(d, message);\n    enter(d, message.incoming);",
    put: "    takeOff(d, message);\n    if (at.head) enter(d, message.incoming);",
  },
  {
    name: "[WB2] a message for a run is shown at each of its steps",
    first: "steering",
    file: machine("phase/steering"),
    find: "    takeOff(d, message);\n",
    put: "",
  },
  {
    name: "[WB2] messages for a run are not told from others",
    first: "steering",
    file: "src/session/apply.ts",
    find: "store.queueFront((state.queue.steered ?? 0) > 0)",
    put: "store.queueFront()",
  },
  {
    name: "[WB3] a message for a run that has ended waits behind the others",
    first: "steering",
    file: machine("phase/queue"),
    find: "const next = steering ?? head;",
    put: "const next = head ?? steering;",
  },
  {
    name: "[WB4] a message in the place of a run waits for its end",
    first: "steering",
    file: machine("phase/interrupting"),
    find: "  return found.runId;",
    put: "  return undefined;",
  },
  {
    name: "[WB5] a guest steers the owner's run",
    first: "steering",
    file: machine("phase/interrupting"),
    find: "return run && sameAuthority(run.origin, sent.incoming.origin) ? run : undefined;",
    put: "return run;",
  },
  {
    name: "[R3] an abort leaves open calls without a result",
    file: machine("phase/ending"),
    find: "  for (const call of run.calls) {\n    if (isAwaiting(call)) endQuestion",
    put: "  for (const call of run.calls.slice(1)) {\n    if (isAwaiting(call)) endQuestion",
  },
  {
    name: "[P10] a message stopped in the queue ends silently",
    file: machine("reduce"),
    find: '    const { seq } = appendNotice(d, {\n      notice: "aborted",\n      runId: event.runId',
    put: '    const seq = state.nextSeq;\n    if (state.runCount < 0)\n      appendNotice(d, {\n      notice: "aborted",\n      runId: event.runId',
  },
  { name: "[G5] [W9] calls have no deadline", file: machine("reduce"), find: "actingTick(d, run);", put: "return;" },
  {
    name: "[W15] the next step begins while a call is open",
    file: machine("phase/acting"),
    find: "if (calls.length === 0) return nextStep(",
    put: "if (calls.length <= 1) return nextStep(",
  },
  {
    name: "[P17] [W16] a torn archive counts",
    file: machine("phase/archiving"),
    find: "if (event.count !== run.count) {",
    put: "if (event.count > run.count) {",
  },
  {
    name: "[P17] a failed archive does not stop the reset",
    file: machine("phase/archiving"),
    find: "  if (run) failedOnce(d, run, event.error);",
    put: '  if (run?.kind === "reset") {\n    settle(d, event.effectId);\n    freshStart(d, run, undefined);\n    return archiveOver(d, "resetDone", run);\n  }\n  if (run) failedOnce(d, run, event.error);',
  },
  {
    name: "[P17] compaction cuts between a call and its result",
    file: "src/session/pressure.ts",
    find: 'if (items[at]?.row.kind === "user") return cutBefore',
    put: "return cutBefore",
  },
  {
    name: "[R9] room is made between a call and its result",
    file: "src/session/pressure.ts",
    find: 'while (at < latest && items[at]?.row.kind === "toolResult") at += 1;',
    put: "",
  },
  {
    name: "[R7] the summary is not shown to the model",
    file: "src/session/history.ts",
    find: "this.#messages = summary ? [summary] : [];",
    put: "this.#messages = [];",
  },
  {
    name: "[P17] a compaction moves on without an archive",
    file: machine("phase/summarizing"),
    find: 'if (run.kind === "compact") return startStage(d, "summaryDone", nextStage(run, "archive"));',
    put: 'if (run.kind === "compact") {\n    d.state.contextFrom = run.upto + 1;\n    d.state.messageCount -= run.count;\n    delete d.state.work;\n    return archiveOver(d, "summaryDone", run);\n  }',
  },
  {
    name: "[R7] the run behind a compaction is forgotten",
    file: machine("phase/turnover"),
    find: "if (!resume) return;",
    put: "if (!resume || run.attempt >= 0) return;",
  },
  {
    name: "[R3] a stop while room is made leaves the run without an end",
    file: machine("phase/archiving"),
    find: "if (run.resume) endByAbort(",
    put: 'if (run.resume?.runId === "") endByAbort(',
  },
  {
    name: "[K27] what was learnt is dropped when the daily file can't be written",
    file: "src/session/effects/append-memory.ts",
    find: "    if (!put.ok)",
    put: '    if (!put.ok && effect.date === "")',
  },
  {
    name: "[K27] [W17] what was learnt is written again after a lost answer",
    file: "src/session/effects/append-memory.ts",
    find: "const key = `",
    put: "const key = flight.tries + `",
  },
  {
    name: "[K27] two compactions share the place of what was learnt",
    file: machine("state"),
    find: "memoryEffectId = (ordinal: number)",
    put: "memoryEffectId = (ordinal: number, _same = (ordinal = 1))",
  },
  {
    name: "[R5] a reset deletes the files of the message that it came with",
    file: "src/session/effects/delete-media.ts",
    find: "effect.before, kept)",
    put: "effect.before, new Set())",
  },
  {
    name: "[R8] memories of a chunk are found again with the next one",
    file: machine("phase/summarizing"),
    find: "memories: head(event.memories, LIMITS.memoriesChars),",
    put: 'memories: head((work?.memories ?? "") + event.memories, LIMITS.memoriesChars),',
  },
  {
    name: "[R5] a reset keeps the summary of the old conversation",
    file: machine("phase/turnover"),
    find: "  delete state.summary;\n  forget(d, run);",
    put: "  forget(d, run);",
  },
  {
    name: "the model is shown what has left the conversation",
    file: "src/session/driver.ts",
    find: "this.#history.trimTo(step.state.contextFrom, step.state.summary)",
    put: "this.#history.trimTo(0, step.state.summary)",
  },
  {
    name: "[P9] [W4] only answers are sent to the platform, no errors",
    file: machine("phase/ending"),
    find: "  reply(d, run, seq);\n}\n/** Returns",
    put: "}\n/** Returns",
  },
  {
    name: "[P9] [W10] an answer that could not be handed to the channel is dropped",
    file: "src/session/effects/reply.ts",
    find: "  if (!lasting && wall() - end.at < MAX_AGE_MS)",
    put: "  if (result?.ok)",
  },
  {
    name: "[P9] every try of a delivery has another name",
    file: "src/session/effects/reply.ts",
    find: "        deliveryId,\n",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: code that is put into a file
    put: "        deliveryId: `${deliveryId}/${flight.tries}/${wall()}`,\n",
  },
  {
    name: "[P11] events that could not be handed over count as delivered",
    file: "src/session/effects/deliver.ts",
    find: "      if (!ok) return false;",
    put: "",
  },
  {
    name: "[P11] a delivery is settled without having happened",
    file: machine("draft"),
    find: "if (deliver && deliver.upto <= delivered) settle",
    put: "if (deliver && deliver.upto <= d.state.nextSeq - 1) settle",
  },
  { name: "[P11] a failed publish is reported as done", file: "src/session/publisher.ts", find: "      ok = false;", put: "" },
  {
    name: "[W22] runs have no budget of steps",
    file: machine("phase/ending"),
    find: "if (nextStep > steps)",
    put: "if (nextStep > steps * 10)",
  },
  {
    name: "[P20] deadlines run on the wall clock",
    file: "src/session/clock.ts",
    find: "(gap >= 0 && gap <= plausible ? gap : 0)",
    put: "gap",
  },
  {
    name: "[G4] the whole text is dropped when the bucket fails",
    file: "src/session/effects/store-result.ts",
    find: "    if (!put.ok)",
    put: '    if (!put.ok && effect.callId === "")',
  },
  {
    name: "the end of a process is taken twice",
    file: "src/session/session-service.ts",
    find: "{ key: `e:",
    put: "{ key: this.#ports.freshId() + `e:",
  },
  {
    name: "[P5.6] a transcript is not stored",
    file: machine("phase/thinking"),
    find: "  d.amend.push(row);",
    put: "",
  },
  {
    name: "[P5.6] a transcript replaces the text of its message",
    file: "src/session/effects/transcribe-recordings.ts",
    find: "      transcribed.push(block);\n      continue;",
    put: "      continue;",
  },
  {
    name: "a note of the gateway is not told to the model",
    file: machine("reduce"),
    find: "...(event.forModel ? { forModel: event.forModel === true ? event.text : event.forModel } : {}),",
    put: "",
  },
  {
    name: "a note of the gateway is taken twice",
    file: "src/session/session-service.ts",
    find: "{ key: `n:",
    put: "{ key: this.#ports.freshId() + `n:",
  },
  {
    name: "a note is in the log, and the model never sees it",
    file: "src/session/history.ts",
    find: "if (!this.#notes.includes(row.forModel)) this.#notes.push(row.forModel);",
    put: "",
  },
  {
    name: "the end of a process is dropped when the queue is full",
    file: machine("phase/queue"),
    find: 'appendNotice(d, { notice: "note", runId: "", text, forModel: text, ...heard(d, taint) });',
    put: "",
  },
  {
    name: "a step takes a transition that its event does not allow",
    file: machine("phase/acting"),
    find: '"resultTaken",',
    put: '"callHandedOver",',
  },
  {
    name: "[R5] a reset leaves the run going",
    file: machine("phase/archiving"),
    find: 'endByAbort(d, run, "The conversation was reset.");',
    put: "",
  },
  {
    name: "[AP1] a call that needs the owner's word is handed over at once",
    first: "approvals",
    file: machine("phase/thinking"),
    find: "if (resolved.ask !== undefined && call.binding !== undefined) {",
    put: "if (resolved.ask !== undefined && call.binding !== undefined && index > 0) {",
  },
  {
    name: "[AP4] an answer to something else than what is asked is taken",
    first: "approvals",
    file: machine("phase/approving"),
    find: "if (event.hash !== undefined && event.hash !== call.approval.hash) {",
    put: 'if (event.hash === "") {',
  },
  {
    name: "[AP3] an allowance after a denial counts",
    first: "approvals",
    file: machine("phase/approving"),
    find: "d.answer = before ? { ...told(before), before: before.at } : ",
    put: 'd.answer = before ? { ...told({ ...before, ended: event.answer === "allow" ? "allowed" : "denied" }), before: before.at } : ',
  },
  {
    name: "[AP5] a question has no end",
    first: "approvals",
    file: "src/calls/rules.ts",
    find: 'if (call.status === "awaiting_approval") return closings.notAnswered(call);',
    put: 'if (call.status === "awaiting_approval") return undefined;',
  },
  {
    name: "[AP6] a question that is asked again keeps no trace of the first",
    first: "approvals",
    file: machine("phase/approving"),
    find: 'd.answer = told(endQuestion(d, call, { ended: "asked_again", again: approval.code }));',
    put: 'd.answer = { type: "approval", ended: "asked_again", code: approval.code };',
  },
  {
    name: "[AP7] the end of a run leaves its questions open in the index",
    first: "approvals",
    file: machine("phase/ending"),
    find: 'endQuestion(d, call, { ended: "withdrawn" });',
    put: "continue;",
  },
  {
    name: "[AP9] the gateway is told of questions once only",
    first: "approvals",
    file: machine("phase/questions"),
    find: "  const revision = last + 1;",
    put: "  if (last > 0) return;\n  const revision = last + 1;",
  },
  {
    name: "[G2] the commit before the only dispatch keeps the effect open",
    file: machine("phase/acting"),
    find: '  settle(d, event.effectId);\n  d.answer = { type: "taken" };',
    put: '  d.answer = { type: "taken" };',
  },
  {
    name: "[TA2] a result does not raise the label",
    file: machine("phase/labels"),
    find: "  if (now !== before) d.state.taint = now;",
    put: "  if (now.source === before.source) d.state.taint = now;",
  },
  {
    name: "[TA2] a compaction forgets the label",
    file: machine("phase/turnover"),
    find: "  leave(d, run);\n  state.compactions += 1;",
    put: "  leave(d, run);\n  delete state.taint;\n  state.compactions += 1;",
  },
  {
    name: "[SP10] a run goes on although the owner denied it more",
    first: "approvals",
    file: machine("phase/limit"),
    find: 'if (answer === "deny") return endWithError',
    put: 'if (answer === "deny" && run.attempt > 99) return endWithError',
  },
  {
    name: "[SP10] the question about a limit has no end",
    first: "approvals",
    file: machine("reduce"),
    find: '  else if (run.phase === "paused" && now >= run.deadline) limitExpired(d, run);\n',
    put: "",
  },
];
