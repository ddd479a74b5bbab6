/** What a session talks to, over a network that loses requests and answers: the gateway, the model, the machines and the bucket. */
import type { OutboundMessage } from "../../../protocol/gen/types.ts";
import type { GatewayPort, SessionNews } from "../../src/ports/gateway.ts";
import type { SpendAnswer, SpendAsk } from "../../src/ports/spend.ts";
import type { SessionParts } from "../../src/session/session-parts.ts";
import { nativeEntry } from "../support/tool-entries.ts";
import type { FakeNode } from "./nodes.ts";
import type { FakeBucket } from "./bucket.ts";
import type { FakeLedger } from "./ledger.ts";
import type { FakeModel } from "./model.ts";
import type { Owner } from "./owner.ts";
import type { Rng } from "./rng.ts";
import type { Settings } from "./settings.ts";
import type { VirtualTime } from "./time.ts";
import type { FakeWaits } from "./waits.ts";

/** The far ends themselves, and what they have noticed. */
export interface FarWorld {
  readonly time: VirtualTime;
  readonly rng: Rng;
  readonly faulty: boolean;
  readonly window: number | undefined;
  readonly channelGone: boolean;
  readonly settings: Settings;
  readonly nodes: readonly FakeNode[];
  readonly model: FakeModel;
  readonly bucket: FakeBucket;
  readonly owner: Owner;
  readonly ledger: FakeLedger;
  readonly waits: FakeWaits;
  readonly results: Map<string, string>;
  readonly received: SessionNews[];
  readonly said: Map<string, string>;
  readonly nativeRuns: Map<string, number>;
  readonly border: () => void;
  readonly problem: (what: string) => void;
}

export class NetworkError extends Error {}

export class FarEnds {
  readonly #world: FarWorld;

  constructor(world: FarWorld) {
    this.#world = world;
  }
  /** A request over the network: it may get there though its sender dies, and its answer may be lost. */
  #remote<T>(isDead: () => boolean, work: () => T, most = 50): Promise<T> {
    return new Promise((resolve, reject) => {
      if (isDead()) return;
      try {
        this.#world.border();
      } catch {
        return;
      }
      this.#world.time.after(this.#world.rng.int(0, most), () => {
        if (isDead() && this.#world.rng.chance(0.5)) return;
        const fails = this.#world.faulty && this.#world.rng.chance(0.02);
        if (fails && this.#world.rng.chance(0.5)) {
          if (!isDead()) reject(new NetworkError("the network failed on the way there"));
          return;
        }
        const result = work();
        this.#world.time.after(this.#world.rng.int(0, most), () => {
          if (isDead()) return;
          if (fails) reject(new NetworkError("the network failed on the way back"));
          else resolve(result);
        });
      });
    });
  }
  /** Grants little, so that sessions often ask; every seventh answer is lost. Takes no chance from older histories. */
  #reserve(isDead: () => boolean, ask: SpendAsk): Promise<SpendAnswer> {
    return new Promise((resolve, reject) => {
      const answer = this.#world.ledger.reserve(structuredClone(ask));
      if (isDead()) return;
      if (this.#world.faulty && this.#world.ledger.asked % 7 === 0) reject(new NetworkError("the network failed on the way back"));
      else resolve(answer);
    });
  }
  /** A channel's outbox: a delivery that it knows is not sent again, and must say the same. */
  #channel({ deliveryId, text }: OutboundMessage): void {
    const known = this.#world.said.get(deliveryId);
    if (known !== undefined && known !== text) this.#world.problem(`the delivery ${deliveryId} says something else than before`);
    this.#world.said.set(deliveryId, text);
  }
  parts(isDead: () => boolean): SessionParts {
    const remote = <T>(work: () => T): Promise<T> => this.#remote(isDead, work);
    const node = (nodeId: string): FakeNode | undefined => this.#world.nodes.find((candidate) => candidate.id === nodeId);
    const gateway: GatewayPort = {
      runContext: (_key, known) => remote(() => (known === this.#world.settings.context().version ? null : this.#world.settings.context())),
      modelAccess: () => remote(() => ({ apiKeys: {}, headers: {} })),
      packTool: ({ tool }) => remote(() => ({ ok: false, error: { reason: "tool.unknown", message: `There is no tool ${tool}.` } })),
      reserveSpend: (ask) => this.#reserve(isDead, ask),
      secretValues: () => remote(() => []),
      useGrants: () => remote(() => []),
      approvals: (report) => remote(() => this.#world.owner.report(report)),
      publish: (_key, news) => remote(() => void this.#world.received.push(...news)),
      dispatchTool: (dispatch) =>
        remote(() => {
          const target = node(dispatch.nodeId);
          if ("wait" in dispatch.args) this.#world.problem(`the machine got the argument of the gateway: ${dispatch.callId}`);
          if (!target?.online) return "offline" as const;
          target.dispatch(dispatch);
          return "sent" as const;
        }),
      awaitNodes: (report) =>
        remote(() => {
          this.#world.waits.report(report);
          const isReady = (nodeId: string): boolean => node(nodeId)?.online === true;
          const full = this.#world.faulty && report.calls.length > 0 && this.#world.rng.chance(0.05);
          return {
            ready: report.calls.flatMap(({ callId, nodeId }) => (isReady(nodeId) ? [callId] : [])),
            ...(full ? { full: true as const } : {}),
          };
        }),
      cancelTools: (nodeId, callIds) => remote(() => node(nodeId)?.cancel(callIds)),
      configGet: () => remote(() => ({ ok: true as const, value: {} })),
      sessionsList: () => remote(() => []),
      nodeLogs: () => remote(() => ({ ok: true as const, value: {} })),
      // No history depends on it, so it takes no chance from those that do.
      audit: () => Promise.resolve(undefined),
      stopAll: () => Promise.resolve("stopped"),
      resumeAll: () => Promise.resolve("resumed"),
      remember: () => remote(() => ({ ok: true as const, value: { id: "m", isNew: true, superseded: false } })),
      emitEvent: () => remote(() => ({ ok: true as const, value: { id: "e", needsApproval: false } })),
      recall: () => remote(() => ({ ok: true as const, value: { hits: [], notes: [] } })),
      search: () => remote(() => ({ ok: true as const, value: { hits: [], more: false, notes: [] } })),
      searchableSessions: () => remote(() => ({ sessions: [], more: false })),
      transfer: () => remote(() => ({ ok: true as const, value: { status: "done" as const, sizeBytes: 0, sha256: "" } })),
      delegate: () => Promise.resolve({ ok: false, error: { reason: "agent.unknown", message: "There is no such agent." } }),
      sendToSession: () => remote(() => ({ ok: true as const, value: { status: "accepted" as const, runId: "none", queued: false } })),
      cron: () => remote(() => ({ ok: true as const, value: { value: {} } })),
      channelPlaces: () => remote(() => ({ channels: [], places: [], more: false })),
      message: () => remote(() => ({ ok: true as const, value: { status: "queued" as const, deliveryId: "none", to: "none" } })),
      skillsSeen: () => remote(() => []),
      skillWriting: () => remote(() => ({ ok: true as const, value: undefined })),
      fileChanging: () => remote(() => undefined),
      filesWritten: () => remote(() => undefined),
      reply: (call) =>
        remote(() => {
          if (this.#world.channelGone)
            return { ok: false as const, error: { reason: "channel.unknown" as const, message: "There is no such channel." } };
          if (call.kind === "send") this.#channel(call.message);
          return { ok: true as const, value: undefined };
        }),
    };
    return {
      gateway,
      model: { takesImages: () => true, refusal: () => undefined, call: (request) => this.#world.model.call(isDead, request) },
      prompts: {
        assemble: () =>
          remote(() =>
            this.#world.faulty && this.#world.rng.chance(0.02)
              ? { ok: false as const, error: { reason: "storage.failed" as const, message: "The bucket is away." } }
              : { ok: true as const, value: { system: "you are a simulation", sections: [] } },
          ),
      },
      native: {
        entries: [nativeEntry("gsv__ReadFile", { idempotent: true }), nativeEntry("gsv__WriteFile")],
        run: (_name, _args, { callId }) =>
          remote(() => {
            this.#world.nativeRuns.set(callId, (this.#world.nativeRuns.get(callId) ?? 0) + 1);
            return { ok: true as const, result: `out ${callId} ` };
          }),
      },
      terms: () => ({ output: 1_000, thinking: 0, inputUsd: 0.001, rates: { output: 0.000_001 } }),
      contextWindow: () => this.#world.window ?? 1_000_000,
      archives: { put: (input) => this.#remote(isDead, () => this.#world.bucket.putArchive(input)) },
      memory: {
        append: (_agent, date, text, key) => remote(() => this.#world.bucket.appendMemory(date, text, key)),
        // The oracle looks for each memory in the bucket, wherever it waits.
        quarantine: ({ date, text, key }) =>
          remote(() => {
            const kept = this.#world.bucket.appendMemory(date, text, key);
            return kept.ok ? { ok: true as const, value: { id: key } } : kept;
          }),
      },
      files: {
        put: (_agent, path, text) =>
          remote(() => {
            if (this.#world.faulty && this.#world.rng.chance(0.1))
              return { ok: false as const, error: { reason: "storage.failed" as const, message: "The bucket is away." } };
            this.#world.results.set(path, text);
            return { ok: true as const, value: undefined };
          }),
      },
      media: {
        takeAttachments: ({ messageId, attachments, now }) =>
          remote(() => {
            const blocks = attachments.map(({ mimeType }, index) => ({
              type: "audio" as const,
              r2Key: `media/s/${messageId}-${index}`,
              mimeType,
            }));
            for (const { r2Key } of blocks) this.#world.bucket.media.set(r2Key, now);
            return { ok: true as const, value: { blocks, notes: [] } };
          }).catch((error: unknown) => {
            if (!(error instanceof NetworkError)) throw error;
            return { ok: false as const, error: { reason: "storage.failed" as const, message: "The bucket is away." } };
          }),
        takeResult: ({ content }) => remote(() => content),
        hydrate: (messages) => Promise.resolve(messages),
        transcribe: ({ r2Key }) => {
          const transcribed = { ok: true as const, value: `said in ${r2Key}` };
          return remote(() => transcribed).catch((error: unknown) => {
            if (error instanceof NetworkError) return transcribed;
            throw error;
          });
        },
        delete: (_key, before, keep) => remote(() => this.#world.bucket.deleteMedia(before, keep)),
      },
    };
  }
}
