/**
 * Transfers that agents ask for (rule TF11): the call waits for the end. When that takes too long, the conversation is told of the end
 * later, once, also over restarts. Runs no transfer.
 */
import { isErrorReason } from "../../../../protocol/gen/errors.ts";
import { afterTimeout, within } from "../../../../protocol/runtime/within.ts";
import { fail } from "../../kernel/outcome.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import { canonicalKey } from "../../kernel/routing/session-keys.ts";
import { originText } from "../../ports/origin.ts";
import { failure, type Result, succeed } from "../../ports/result.ts";
import type { SessionsPort } from "../../ports/sessions.ts";
import { higher, taintMark, type Taint } from "../../ports/taint.ts";
import type { TransferAsk, TransferTold } from "../../ports/transfers.ts";
import { type CreatePorts, createTransfer } from "./create.ts";
import { parseEndpoint } from "./endpoint.ts";
import type { TransferRow } from "./store.ts";

export type AgentTransferPorts = CreatePorts & SessionsPort & Pick<KernelPorts, "contextVersion" | "ids" | "log">;
const ID_CHARS = 32;
/** A conversation that does not answer is told again later. */
const ANSWER_MS = 10_000;
const AGAIN_MS = 30_000;
const SELF: Taint = { label: "self", source: "" };

export class AgentTransfers {
  readonly #ports: AgentTransferPorts;
  constructor(ports: AgentTransferPorts) {
    this.#ports = ports;
  }

  async transfer({ from, callId, origin, taint, source, destination, force, waitMs }: TransferAsk): Promise<Result<TransferTold>> {
    const { store, runner, ids } = this.#ports;
    const by = `session:${from.key}`;
    const begun = await createTransfer(
      this.#ports,
      {
        id: (await ids.sha256(`transfer:${callId}`)).slice(0, ID_CHARS),
        agentId: from.agentId,
        source,
        destination,
        isForced: force,
        by,
        sessionKey: from.key,
        ...(taint === undefined ? {} : { taint }),
      },
      { actor: by, origin: (origin === undefined ? "client" : originText(origin)) + taintMark(taint) },
    );
    if (!begun.ok) return begun;
    const { id } = begun.value;
    await within(afterTimeout, waitMs, runner.ended(id), () => undefined);
    const row = store.get(id);
    if (row === undefined) return fail("transfer.unknown");
    if (row.endedAt !== undefined) return endOf(row);
    // The report of a task has gone before such a copy ends, and its conversation starts no run of its own.
    store.tellLater(id, origin?.kind === "task" ? "note" : "run");
    const { sizeBytes } = row.facts;
    return succeed({ status: "running", doneBytes: runner.doneBytes(row), ...(sizeBytes === undefined ? {} : { sizeBytes }) });
  }

  /** Tells the conversations whose transfers have ended since their call. */
  async tellEnds(now: number): Promise<void> {
    const { store, log } = this.#ports;
    await Promise.all(
      store.untold(now).map(async (row) => {
        try {
          await this.#tell(row);
          store.told(row.id);
        } catch (error) {
          log.warn("transfer_end_not_told", { transfer: row.id, error });
          store.tellAgain(row.id, now, AGAIN_MS);
        }
      }),
    );
  }
  /** Throws when the conversation does not answer. */
  async #tell(row: TransferRow): Promise<void> {
    const { ask, config, contextVersion, now, sessions } = this.#ports;
    const { id, sessionKey = "", tell, taint } = row;
    const named = canonicalKey(sessionKey, config.mainKey());
    // A conversation that was deleted is not made again.
    if (!named.ok || sessions.find(named.key) === undefined) return;
    const identity = sessions.takeUp(named, now());
    const text = `[System message, not from the user] ${sentenceOf(row)}`;
    const told = ask(named.key, async (session) => {
      const note = { identity, key: `transfer:${id}`, text, forModel: true } as const;
      if (tell === "note") return session.note(note);
      const sent = await session.send({
        identity,
        messageId: `transfer:${id}`,
        runId: `transfer-${id}`,
        text: `${text}\nGo on with what it was started for; if nothing is left to do, say how it ended.`,
        verbatim: true,
        origin: { kind: "node_event", nodeId: machineOf(row) },
        taint: { label: higher(SELF, taint).label, source: `the end of a copy from ${row.source}`.slice(0, SOURCE_CHARS) },
        contextVersion: contextVersion(),
      });
      // Its queue is full.
      if (!sent.ok) await session.note(note);
    });
    await within(afterTimeout, ANSWER_MS, told, () => {
      throw new Error("the conversation does not answer");
    });
  }
}
const SOURCE_CHARS = 160;

function endOf({ facts, reason, problem = "" }: TransferRow): Result<TransferTold> {
  if (reason === undefined) return succeed({ status: "done", sizeBytes: facts.sizeBytes ?? 0, sha256: facts.sha256 ?? "" });
  return failure(isErrorReason(reason) ? reason : "transfer.failed", problem);
}
function sentenceOf({ source, destination, facts, reason, problem = "" }: TransferRow): string {
  const what = `The copy of ${JSON.stringify(source)} to ${JSON.stringify(destination)}`;
  if (reason !== undefined) return `${what} failed (${reason}): ${JSON.stringify(problem)}`;
  return `${what} is done: ${facts.sizeBytes ?? 0} bytes, checked, sha256 ${facts.sha256 ?? ""}.`;
}
/** One end of every transfer is on a machine. */
function machineOf({ source, destination }: TransferRow): string {
  for (const text of [destination, source]) {
    const endpoint = parseEndpoint(text);
    if (endpoint.ok && endpoint.value.kind === "node") return endpoint.value.nodeId;
  }
  return "";
}
