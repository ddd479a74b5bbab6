/** Maps each open effect to its interpreter, with exactly the ports that the interpreter needs. Decides nothing. */
import type { Applied } from "../apply.ts";
import type { History } from "../history.ts";
import type { Effect, EffectOf } from "../machine/effect.ts";
import type { EventBody } from "../machine/event.ts";
import type { State } from "../machine/state.ts";
import type { Flight, FlightEnd, StartEffect } from "../pump.ts";
import type { RunContexts } from "../run-context.ts";
import type { SessionParts } from "../session-parts.ts";
import type { SpendGate } from "../spend-gate.ts";
import type { SessionStore } from "../store/session-store.ts";
import type { Waits } from "../waits.ts";
import { appendMemory } from "./append-memory.ts";
import { archive } from "./archive.ts";
import { awaitNodes, type AwaitPorts } from "./await-nodes.ts";
import type { ModelCaller } from "./call-model.ts";
import { cancelTool } from "./cancel-tool.ts";
import { deleteMedia } from "./delete-media.ts";
import { dispatchTool } from "./dispatch-tool.ts";
import { reportApprovals } from "./report-approvals.ts";
import { sendReply } from "./reply.ts";
import { storeResult } from "./store-result.ts";
import { summarize } from "./summarize.ts";
import type { After } from "../../../../protocol/runtime/within.ts";

export interface InterpretPorts {
  readonly parts: SessionParts;
  readonly store: SessionStore;
  readonly state: () => State | undefined;
  readonly history: () => History;
  readonly contexts: RunContexts;
  readonly caller: ModelCaller;
  readonly spend: SpendGate;
  readonly waits: Waits;
  readonly sha256: (text: string) => Promise<string>;
  readonly lookedDecision: AwaitPorts["decide"];
  readonly recordDenied: AwaitPorts["recordDenied"];
  readonly deliver: (effect: EffectOf<"Deliver">, flight: Flight) => Promise<FlightEnd>;
  readonly apply: (event: EventBody) => Applied;
  readonly wall: () => number;
  readonly after: After;
  readonly failed: (what: string, error: unknown) => void;
}

export function interpreter(ports: InterpretPorts): StartEffect {
  const { parts, store, state, history, contexts, caller, spend, waits, deliver, apply, wall, after, failed } = ports;
  const commit = (event: EventBody): void => {
    apply(event);
  };
  const hasChanged = (event: EventBody): boolean => {
    const { step } = apply(event);
    return step !== undefined && (step.append.length > 0 || step.answer?.type === "taken");
  };
  const end = async (event: Promise<EventBody | undefined>): Promise<FlightEnd> => {
    const body = await event;
    if (body) commit(body);
    return "done";
  };
  return (effect: Effect, flight: Flight): Promise<FlightEnd> => {
    switch (effect.type) {
      case "CallModel":
        return end(caller.call(effect, flight));
      case "DispatchTool":
        return dispatchTool(effect, flight, {
          state,
          row: (seq) => history().find(seq),
          gateway: parts.gateway,
          native: parts.native,
          media: parts.media,
          wall,
          mediaKey: (number) => store.mediaKey(number),
          hider: () => contexts.hider(),
          userTimezone: () => contexts.known?.config.userTimezone ?? "UTC",
          confirmSoon: (coming) => contexts.confirmSoon(coming),
          after,
          commit: hasChanged,
        });
      case "CancelTool":
        return cancelTool(effect, flight, { gateway: parts.gateway, commit });
      case "AwaitNodes":
        return awaitNodes(effect, flight, {
          state,
          gateway: parts.gateway,
          decide: ports.lookedDecision,
          commit: hasChanged,
          recordDenied: ports.recordDenied,
        });
      case "ReportApprovals":
        return reportApprovals(effect, flight, {
          state,
          row: (seq) => history().find(seq),
          gateway: parts.gateway,
          sha256: ports.sha256,
          commit,
        });
      case "Deliver":
        return deliver(effect, flight);
      case "Archive":
        return end(
          archive(effect, {
            state,
            messages: () => history().messageRows(),
            archives: parts.archives,
            after,
          }),
        );
      case "Summarize":
        return end(
          summarize(effect, flight, {
            state,
            history,
            contexts,
            model: parts.model,
            spend,
            contextWindow: parts.contextWindow,
            wall,
            after,
            failed,
          }),
        );
      case "AppendMemory":
        return appendMemory(effect, flight, { state, text: (id) => store.resultText(id), memory: parts.memory, wall, commit });
      case "DeleteMedia":
        return waits.withFiles(() =>
          deleteMedia(effect, flight, {
            state,
            rows: (from, limit) => store.rows(from, limit),
            queued: () => store.queued(),
            media: parts.media,
            after,
            commit,
            deleted: (id, count) => waits.deleted(id, count),
            dropNumbers: (keep) => store.dropMediaNumbers(keep),
          }),
        );
      case "Reply":
        return sendReply(effect, flight, {
          row: (seq) => store.rowAt(seq),
          who: () => state()?.identity,
          gateway: parts.gateway,
          wall,
          commit,
          after,
        });
      case "StoreResult":
        return storeResult(effect, flight, { state, text: (callId) => store.resultText(callId), files: parts.files, commit });
    }
  };
}
