/**
 * Checks what must hold in every simulated history when nothing happens any more: on the disk, in the events that clients got, and in the
 * messages that platforms were sent. Reports each breach with `world.problem`.
 */
import { sessionSeqOf } from "../../src/ports/gateway.ts";
import { isMediaBlock, type Message, textOf } from "../../src/ports/messages.ts";
import { higher, isAbove, OWNER } from "../../src/ports/taint.ts";
import { rowEvents } from "../../src/session/events.ts";
import { isMessageRow, type LogRow } from "../../src/session/machine/log.ts";
import type { State } from "../../src/session/machine/state.ts";
import { historyProblem } from "./history.ts";
import type { Noted, Sent } from "./sent.ts";
import { checkSteering } from "./steering.ts";
import { checkWaits } from "./waits.ts";
import type { World } from "./world.ts";
import { IDENTITY } from "./world.ts";

const isTerminal = (row: LogRow): boolean =>
  (row.kind === "assistant" && row.calls.length === 0) || (row.kind === "notice" && (row.notice === "error" || row.notice === "aborted"));

/** The run whose end answers the message. */
function runOf(message: Sent | undefined, rows: readonly LogRow[]): string | undefined {
  const shown = rows.find((row) => row.kind === "user" && row.messageId === message?.messageId && row.steered !== undefined);
  return shown?.runId ?? message?.runId;
}

export function checkAtRest(world: World, sent: readonly Sent[], execs: readonly string[], noted: readonly Noted[]): void {
  const bad = (what: string): void => world.problem(what);
  const { disk } = world;
  const rows = disk.everything;
  const state = disk.load();
  if (!state) {
    if (sent.some((message) => message.state === "accepted")) bad("messages were accepted, and there is no session");
    return;
  }
  // [P12] Everything has come to an end.
  if (state.run.phase !== "idle") bad(`the session is still ${state.run.phase}`);
  if (state.outbox.length > 0) bad(`open effects: ${state.outbox.map((effect) => effect.id).join(", ")}`);
  if (state.queue.count !== 0 || disk.waiting !== 0) bad(`${state.queue.count} messages wait, ${disk.waiting} in the table`);
  if (disk.keptResults > 0) bad("long results were not moved to the bucket");

  // [P1] [P4] What was accepted was accepted once, and what was refused was not.
  const accepted = disk.accepted.filter((key) => key.startsWith("m:")).map((key) => key.slice(2));
  if (new Set(accepted).size !== accepted.length) bad("a message was accepted twice");
  for (const message of sent) {
    if (message.state === "pending") bad(`${message.messageId} never got an answer`);
    if (message.state === "accepted" && !accepted.includes(message.messageId))
      bad(`${message.messageId} was acknowledged and is not there`);
    if (message.state === "refused" && accepted.includes(message.messageId)) bad(`${message.messageId} was refused and is there`);
  }
  // [P10] Exactly one end for each.
  for (const messageId of accepted) {
    const message = sent.find((candidate) => candidate.messageId === messageId);
    const ends = rows.filter((row) => row.runId === runOf(message, rows) && isTerminal(row));
    if (ends.length !== (message?.quiet ? 0 : 1)) bad(`${messageId} has ${ends.length} ends: ${ends.map((row) => row.seq).join(", ")}`);
  }
  checkPlatform(world, sent, rows);
  // [P3] In the order of acceptance, each once.
  const users = rows.filter((row) => row.kind === "user").map((row) => row.messageId);
  if (new Set(users).size !== users.length) bad("a user message is in the log twice");
  const wished = new Set(sent.flatMap(({ messageId, wish }) => (wish ? [messageId] : [])));
  const begun = users.filter((messageId) => !messageId.startsWith("exec:"));
  const inTurn = begun.filter((messageId) => !wished.has(messageId));
  const expected = accepted.filter((messageId) => inTurn.includes(messageId));
  if (inTurn.join() !== expected.join()) bad(`the order is ${inTurn.join()}, accepted was ${expected.join()}`);
  checkSteering(world, sent, rows);
  checkWaits({ waits: world.waits, nodes: world.nodes, problem: bad }, rows);
  for (const messageId of accepted) {
    const runId = sent.find((candidate) => candidate.messageId === messageId)?.runId;
    const stopped = rows.some((row) => row.kind === "notice" && row.notice === "aborted" && row.runId === runId);
    if (!begun.includes(messageId) && !stopped) bad(`${messageId} never began and was not stopped`);
  }
  for (const eventId of execs) {
    const found = rows.filter(
      (row) =>
        (row.kind === "user" && row.messageId.endsWith(`:${eventId}`)) ||
        (row.kind === "notice" && row.notice === "note" && row.text.includes(`process ${eventId} on`)),
    );
    if (found.length !== 1) bad(`the end of the process ${eventId} is there ${found.length} times`);
  }
  // Each note is in the log once, and the model gets it exactly when its sender said so.
  for (const { text, forModel } of noted) {
    const found = rows.filter((row) => row.kind === "notice" && row.notice === "note" && row.text === text);
    const [row] = found;
    if (found.length !== 1) bad(`the note "${text}" is there ${found.length} times`);
    else if (row?.kind === "notice" && row.forModel !== (forModel ? text : undefined)) bad(`the note "${text}" has the wrong \`forModel\``);
  }
  checkRecordings(world, rows);
  const history = historyProblem(rows);
  if (history !== undefined) bad(history);
  // [W22] [SP10] No run takes more steps than it may, and than its owner has allowed.
  for (const row of rows) {
    if (row.kind !== "assistant") continue;
    const more = rows.filter((other) => other.runId === row.runId && isLimit(other) && world.owner.allowed.has(other.question.callId));
    if (row.step > world.stepsPerRun * (1 + more.length)) bad(`${row.runId} took ${row.step} steps`);
  }

  checkSpend(world, state);
  checkLabel(world, rows, state);
  checkTools(world, rows);
  checkApprovals(world, rows);
  checkResults(world, rows);
  checkArchives(world, rows);
  checkMemories(world);
  checkMedia(
    world,
    rows.filter((row) => row.seq >= state.contextFrom),
  );
  checkClients(world, rows);
}

/** [P5.6] The recordings of every message that the model answered are transcribed, in the message's own row and with nothing else changed. */
function checkRecordings(world: World, rows: readonly LogRow[]): void {
  for (const row of rows) {
    if (row.kind !== "user" || typeof row.message.content === "string") continue;
    const answered = rows.some((other) => other.kind === "assistant" && other.runId === row.runId && other.seq > row.seq);
    for (const block of row.message.content) {
      if (!isMediaBlock(block) || block.type !== "audio") continue;
      if (answered && block.transcript !== `said in ${block.r2Key}`) world.problem(`the recording ${block.r2Key} was not transcribed`);
    }
    if (!textOf(row.message.content.filter((block) => block.type === "text")).startsWith(`say ${row.messageId}`))
      world.problem(`the text of ${row.messageId} was changed with its recording`);
  }
}

/**
 * [TA2] The label is at least that of everything in the conversation, also of what a compaction has archived since the last reset, and
 * nothing lowers it but a reset and the owner's word.
 */
function checkLabel(world: World, rows: readonly LogRow[], { taint, contextFrom }: State): void {
  const lastOf = (notice: string, text = ""): number =>
    rows.findLastIndex((row) => row.kind === "notice" && row.notice === notice && row.text.startsWith(text));
  const trusted = rows[lastOf("settings", "From now on what this conversation has read")]?.seq ?? 0;
  const reset = rows[lastOf("reset")]?.seq ?? 0;
  let least = OWNER;
  for (const row of rows)
    if (row.kind !== "assistant" && row.taint !== undefined && row.seq > trusted && (row.seq > reset || row.seq >= contextFrom))
      least = higher(least, { label: row.taint, source: `the row ${row.seq}` });
  if (isAbove(least.label, taint?.label ?? "owner"))
    world.problem(`the conversation has read ${least.source} of ${least.label}, and its label is ${taint?.label}`);
  // The machine `lap` reports no sandbox.
  for (const row of rows)
    if (row.kind === "toolResult" && row.outcome === "ok" && row.message.toolName === "lap__Bash" && row.taint !== "world")
      world.problem(`the output of a command has the label ${row.taint}`);
}

/** [SP2] The ledger has each model call that ended once, whatever was lost and repeated on the way. */
function checkSpend(world: World, { spend }: State): void {
  if (spend) world.ledger.take(spend);
  const settled = world.ledger.sums.reduce((sum, { calls }) => sum + calls, 0);
  if (settled !== (spend?.count ?? 0)) world.problem(`${settled} model calls were settled of ${spend?.count ?? 0}`);
}

/** [P9] [P10] [W4] The end of each run that began on a platform was sent there once, and nothing else except ends of processes. */
function checkPlatform(world: World, sent: readonly Sent[], rows: readonly LogRow[]): void {
  const said = [...world.said.values()];
  const take = (text: string): boolean => {
    const at = said.indexOf(text);
    if (at !== -1) said.splice(at, 1);
    return at !== -1;
  };
  const told = new Set<string>();
  for (const message of sent) {
    const runId = runOf(message, rows);
    const end = rows.find((row) => row.runId === runId && isTerminal(row));
    if (!end || message.routed !== true || told.has(end.runId)) continue;
    told.add(end.runId);
    if (world.channelGone) {
      if (!rows.some((row) => row.kind === "notice" && row.text.startsWith("An answer could not be sent over")))
        world.problem(`that the end of ${message.messageId} could not be sent is told to no one`);
      continue;
    }
    const text = end.kind === "assistant" ? textOf(end.message.content) : end.kind === "notice" ? end.text : "";
    if (!take(text)) world.problem(`the end of ${message.messageId} was not sent to its platform`);
  }
  const woken = rows.filter((row) => isTerminal(row) && !sent.some(({ runId }) => runId === row.runId)).length;
  if (said.length > woken) world.problem(`the platform was told ${said.length} things that it had not asked for`);
}

function checkTools(world: World, rows: readonly LogRow[]): void {
  const bad = (what: string): void => world.problem(what);
  const starts = new Map(world.nodes.flatMap((node) => [...node.starts].map(([callId, count]) => [callId, { count, node }] as const)));
  const names = new Map(
    rows.flatMap((row) => (row.kind === "assistant" ? row.calls.map((call) => [call.callId, call.name] as const) : [])),
  );
  // [P6] At most one start, on both kinds of machine.
  for (const [callId, { count, node }] of starts) {
    const name = names.get(callId);
    const harmless = name?.endsWith("__Read") === true && !node.ledger;
    if (count > 1 && !harmless) bad(`${name ?? "a call that no answer made"} ${callId} was started ${count} times on ${node.id}`);
    if (name === undefined || !name.startsWith(`${node.id}__`)) bad(`${callId} ran on ${node.id}, where it does not belong`);
  }
  for (const row of rows) {
    if (row.kind !== "toolResult") continue;
    const text = textOf(row.message.content);
    // [W7] A call's result is its own.
    if (row.outcome === "ok" && !text.startsWith(`out ${row.callId} `))
      bad(`${row.callId} has another call's result: ${text.slice(0, 80)}`);
    if (text.includes("SECRET")) bad(`${row.callId} took a result from a machine that it was not handed to`);
    // What is said to have done nothing did nothing.
    const denies = /was not run|changes nothing|changed nothing/.test(text);
    if (denies && starts.has(row.callId) && names.get(row.callId)?.endsWith("__Bash"))
      bad(`${row.callId} is said to have done nothing, and it was started`);
  }
  // [P7] What a machine with a ledger reported is in the history exactly once: as the result, or as a late note.
  for (const node of world.nodes) {
    if (!node.ledger) continue;
    for (const { callId, outcome, text } of node.ended) {
      const asResult = rows.filter(
        (row) => row.kind === "toolResult" && row.callId === callId && textOf(row.message.content).startsWith(text.slice(0, 40).trim()),
      ).length;
      const asNote = rows.filter((row) => row.kind === "notice" && row.notice === "late" && row.text.includes(`(call ${callId})`)).length;
      const cancelled =
        rows.some((row) => row.kind === "toolResult" && row.callId === callId && row.outcome === "cancelled") && outcome === "cancelled";
      if (asResult + asNote !== 1 && !(cancelled && asNote === 0))
        bad(
          `the result "${text.slice(0, 40)}" (${outcome}) of ${callId} is in the history ${asResult} times and ${asNote} times as a note`,
        );
    }
  }
}

/** [AP1] [AP3] [P15] [S13] A call that needs the owner's word runs only when the owner has allowed exactly this call, and is denied otherwise. */
function checkApprovals(world: World, rows: readonly LogRow[]): void {
  const { owner } = world;
  if (owner.waiting > 0) world.problem(`${owner.waiting} questions still wait`);
  const started = new Set([...world.nodes.flatMap((node) => [...node.starts.keys()]), ...world.nativeRuns.keys()]);
  const asked = new Set(rows.flatMap((row) => (row.kind === "notice" && row.question ? [row.question.callId] : [])));
  for (const callId of started)
    if (asked.has(callId) && !owner.allowed.has(callId)) world.problem(`${callId} ran, and the owner has not allowed it`);
  // The fourth policy allows everything.
  if (world.settings.policy < 3)
    for (const row of rows) {
      const blocks = row.kind === "assistant" ? row.message.content.filter((block) => block.type === "toolCall") : [];
      for (const [index, { arguments: args }] of blocks.entries()) {
        const callId = (row.kind === "assistant" ? row.calls[index]?.callId : undefined) ?? "";
        if (world.settings.needsApproval(args) && started.has(callId) && !asked.has(callId))
          world.problem(`${callId} ran without a question`);
      }
    }
  for (const row of rows) {
    if (row.kind !== "toolResult") continue;
    const isDenied = row.reason === "approval.denied" || row.reason === "approval.expired";
    if (isDenied && started.has(row.callId)) world.problem(`${row.callId} was denied, and it ran`);
    if (isDenied && !asked.has(row.callId)) world.problem(`${row.callId} was denied, and no one was asked`);
  }
  for (const { callId, taken } of owner.told.values()) {
    const limit = rows.find((row): row is LimitRow => isLimit(row) && row.question.callId === callId);
    if (limit) {
      if (taken.outcome !== "allowed" && !rows.some((row) => row.kind === "notice" && row.runId === limit.runId && END.has(row.notice)))
        world.problem(`${callId} was ${taken.outcome}, and its run has not ended`);
      continue;
    }
    const result = rows.find((row) => row.kind === "toolResult" && row.callId === callId);
    const reason = result?.kind === "toolResult" ? result.reason : undefined;
    if (taken.outcome === "denied" && reason !== "approval.denied") world.problem(`${callId} was denied, and its result is ${reason}`);
    if (taken.outcome === "allowed" && reason?.startsWith("approval.") && !world.waits.seen.has(callId))
      world.problem(`${callId} was allowed, and its result is ${reason}`);
  }
}

type LimitRow = LogRow & { readonly kind: "notice"; readonly question: { readonly callId: string } };
const isLimit = (row: LogRow): row is LimitRow => row.kind === "notice" && row.question?.limit === true;
const END: ReadonlySet<string> = new Set(["error", "aborted"]);

/** [G4] The whole text of a shortened result is in the bucket. */
function checkResults(world: World, rows: readonly LogRow[]): void {
  for (const row of rows) {
    if (row.kind !== "toolResult" && !(row.kind === "notice" && row.notice === "late")) continue;
    const path = /with path "(results\/[^"]+)"/.exec(row.kind === "notice" ? row.text : textOf(row.message.content))?.[1];
    if (path !== undefined && (world.results.get(path)?.length ?? 0) < 60_000) world.problem(`the whole text of ${path} is not kept`);
  }
}

/**
 * [P17] [R11] [K25] [K26] Each message is in exactly one place: the archives that the log names, one after the other, and the remaining
 * messages are the whole history in order. An archive that was stored and is not named is harmless.
 */
function checkArchives(world: World, rows: readonly LogRow[]): void {
  const state = world.disk.load();
  if (!state) return;
  const messages = rows.filter(isMessageRow);
  const left = messages.filter((row) => row.seq >= state.contextFrom);
  if (left.length !== state.messageCount) world.problem(`the conversation has ${left.length} messages and says ${state.messageCount}`);
  const text = (message: Message): string => JSON.stringify(message);
  const gone = messages.filter((row) => row.seq < state.contextFrom).map((row) => text(row.message));
  const used = rows.flatMap((row) => (row.kind === "notice" && row.archive ? [row.archive] : []));
  if (new Set(used.map(({ key }) => key)).size !== used.length) world.problem("two turns of the conversation name the same archive");
  const archived: string[] = [];
  for (const { key, count } of used) {
    const whole = world.bucket.archives.get(key) ?? [];
    // A session's own transcript may begin with the summary of what earlier parts have.
    const own = whole.filter((message, index) => index > 0 || !isSummary(message));
    if (own.length !== count) world.problem(`${key} has ${own.length} messages and should have ${count}`);
    archived.push(...own.map(text));
  }
  const first = gone.findIndex((message, index) => message !== archived[index]);
  if (gone.length !== archived.length || first !== -1)
    world.problem(
      `${gone.length} messages left the conversation, ${archived.length} are archived; the first that differs: ${(gone[first] ?? "").slice(0, 120)}`,
    );
  const resets = rows.filter((row) => row.kind === "notice" && row.notice === "reset").length;
  if (resets !== state.previousSessionIds.length)
    world.problem(`${resets} resets made ${state.previousSessionIds.length} earlier sessions`);
}
const isSummary = (message: Message): boolean =>
  message.role === "user" && typeof message.content === "string" && message.content.startsWith("[Summary made by GSV");

/** [R5] A reset deletes no file of a message that is part of the fresh conversation. */
function checkMedia(world: World, rows: readonly LogRow[]): void {
  for (const row of rows) {
    if (row.kind !== "user" || typeof row.message.content === "string") continue;
    for (const block of row.message.content)
      if (isMediaBlock(block) && !world.bucket.media.has(block.r2Key)) world.problem(`the file ${block.r2Key} of ${row.messageId} is gone`);
  }
}

/** [K27] [W17] The daily files hold each memory exactly once, and nothing else. */
function checkMemories(world: World): void {
  let whole = [...world.bucket.memoryFiles.values()].map(({ text }) => text).join("");
  for (const text of world.disk.memories) {
    const at = whole.indexOf(text);
    if (at === -1) world.problem(`what was learnt is not in a daily file: ${text}`);
    else whole = whole.slice(0, at) + whole.slice(at + text.length);
  }
  if (whole !== "") world.problem(`the daily files have more than was learnt: ${whole.slice(0, 200)}`);
  const facts = world.disk.memories.flatMap((text) => text.match(/fact-\d+\./g) ?? []);
  if (new Set(facts).size !== facts.length) world.problem("a memory was written down twice");
}

/** [P11] The events that a client got, without repeated ones, are all events of the log, in order. */
function checkClients(world: World, rows: readonly LogRow[]): void {
  const wanted = rows.flatMap((row) => rowEvents(IDENTITY.key, row)).map((news) => JSON.stringify(news));
  const got: string[] = [];
  let last = 0;
  for (const news of world.received) {
    const seq = sessionSeqOf(news);
    if (seq === undefined || seq <= last) continue;
    last = seq;
    got.push(JSON.stringify(news));
  }
  if (got.length !== wanted.length || got.some((news, index) => news !== wanted[index])) {
    const first = wanted.findIndex((news, index) => news !== got[index]);
    world.problem(
      `clients got ${got.length} of ${wanted.length} events; the first that differs: ${wanted[first]?.slice(0, 160) ?? got.at(-1)?.slice(0, 160) ?? ""}`,
    );
  }
}
