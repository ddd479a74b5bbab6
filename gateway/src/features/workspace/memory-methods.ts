/**
 * `memory.*`: what was learnt in a conversation that others have written into waits here for the owner (rules TA12-TA15). Only a client
 * keeps or drops it: no tool of a run and no session can.
 */
import { actorOf } from "../../kernel/authorise.ts";
import { asSessionKey } from "../../../../protocol/gen/types.ts";
import { unifiedDiff } from "../../calls/diff.ts";
import { shownText, visible } from "../../calls/shown-call.ts";
import type { Handlers } from "../../kernel/feature.ts";
import { unknownAgent } from "../../kernel/naming.ts";
import { fail } from "../../kernel/outcome.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import { type Result, succeed, sentence } from "../../ports/result.ts";
import { sha256Of } from "../../storage/skills/folder.ts";
import { type Quarantine, type QuarantineEntry, readId } from "../../storage/workspace/quarantine.ts";
import type { WorkspaceStore } from "../../storage/workspace/store.ts";
import { promoted } from "./changes.ts";

export interface MemoryMethodPorts extends Pick<KernelPorts, "config"> {
  readonly store: Pick<WorkspaceStore, "own" | "update">;
  readonly quarantine: Quarantine;
}
const encode = (text: string): Uint8Array<ArrayBuffer> => new Uint8Array(new TextEncoder().encode(text));
const notFound = (id: string): Result<never> => fail("memory.not_found", `No memory ${visible(id.slice(0, 32))} waits for you.`);

export function memoryMethods({ config, store, quarantine }: MemoryMethodPorts): Handlers {
  const agentOf = (agentId: string | undefined): string => agentId ?? config.defaultAgentId();
  async function shown(agentId: string, entry: QuarantineEntry) {
    const { id, path, change, taint, sessionKey, callId, at } = entry;
    const file = await store.own(agentId, path);
    const current = file.ok ? file.value?.content : undefined;
    const next = file.ok ? promoted(path, change)(current) : file;
    const { text, bytes, whole } = shownText(next.ok ? unifiedDiff(path, current, next.value) : "");
    return {
      id,
      path,
      label: taint.label,
      source: visible(taint.source).slice(0, 512),
      sessionKey: asSessionKey(sessionKey),
      callId: callId.slice(0, 256),
      at,
      diff: text,
      diffBytes: bytes,
      ...(whole === undefined ? {} : { diffSha256: await sha256Of(encode(whole)) }),
      etag: (file.ok ? file.value?.etag : undefined) ?? "absent",
      ...(next.ok ? {} : { problem: visible(sentence(next.error)).slice(0, 1024) }),
    };
  }
  return {
    "memory.quarantine": async (_caller, params) => {
      const agent = agentOf(params.agentId);
      const waiting = await quarantine.list(agent);
      if (!waiting.ok) return waiting;
      const memories: Awaited<ReturnType<typeof shown>>[] = [];
      for (const entry of waiting.value.entries) memories.push(await shown(agent, entry));
      return succeed({ memories, damaged: [...waiting.value.damaged] });
    },
    "memory.promote": async ({ connection }, { id: given, agentId, ifMatch }) => {
      const agent = agentOf(agentId);
      if (!config.hasAgent(agent)) return unknownAgent(config, agent);
      const id = readId(given);
      if (id === undefined) return notFound(given);
      const entry = await quarantine.find(agent, id);
      if (!entry.ok) return entry;
      if (entry.value === undefined) return notFound(given);
      const { path, change } = entry.value;
      // The file remembers the id, so that an interrupted promotion is not made twice.
      const by = actorOf(connection.principal);
      const written = await store.update(agent, path, promoted(path, change), `quarantine/${id}`, {
        by,
        ...(ifMatch === undefined ? {} : { ifMatch }),
      });
      if (!written.ok) {
        const { reason, message } = written.error;
        if (reason !== "edit.no_match" && reason !== "edit.ambiguous" && reason !== "path.not_found" && reason !== "tool.bad_args")
          return written;
        return fail("workspace.conflict", message, `Drop it, or make the change yourself: \`gsv workspace edit ${path}\`.`);
      }
      const dropped = await quarantine.drop(agent, id);
      return dropped.ok ? succeed({ ok: true, path }) : dropped;
    },
    "memory.drop": async (_caller, { id: given, agentId }) => {
      const id = readId(given);
      if (id === undefined) return notFound(given);
      const dropped = await quarantine.drop(agentOf(agentId), id);
      return dropped.ok ? succeed({ ok: true, dropped: dropped.value }) : dropped;
    },
  };
}
