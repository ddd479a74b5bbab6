/**
 * Composes a gateway from the kernel and a list of features (`features.ts` has the list of this program). `parts` connects it to other
 * objects and services; tests replace nothing else.
 */
import type { ChannelService } from "../../../protocol/gen/services.ts";
import { afterTimeout } from "../../../protocol/runtime/within.ts";
import { SEAL_NONCE_BYTES } from "../../../protocol/runtime/sealing.ts";
import { PACKS } from "../../packs/index.ts";
import { allTopics, type Topic, TopicList } from "../events/topics.ts";
import { Packs } from "../features/packs/packs.ts";
import type { FeatureList, FeatureTables } from "../kernel/feature.ts";
import { Kernel } from "../kernel/kernel.ts";
import { migrateFeatures } from "../kernel/migrations.ts";
import { KERNEL_TABLES } from "../kernel/tables.ts";
import { addGcPressure } from "../../../protocol/runtime/gc-pressure.ts";
import { createModelClient } from "../models/model-client.ts";
import { systemClock } from "../platform/clock.ts";
import {
  allowedOrigins,
  bootstrapTokenHash,
  channelNames,
  channelService,
  type Env,
  eventQueue,
  isEmbedded,
  publicFetch,
  restoredCopy,
  sealingKeys,
  versionOf,
} from "../platform/env.ts";
import { randomName, sha256Hex } from "../platform/ids.ts";
import { consoleSink, createLogger, type Logger, SecretValues } from "../platform/log.ts";
import { answerPings } from "../platform/sockets.ts";
import type { Packs as PackList } from "../packs/pack.ts";
import type { EventQueue } from "../ports/events.ts";
import type { GatewayPort } from "../ports/gateway.ts";
import type { IndexSpace, JobPort } from "../ports/jobs.ts";
import type { ModelClient } from "../ports/model.ts";
import type { MovablePort, ObjectKind } from "../ports/moving.ts";
import type { NativeTools } from "../ports/native-tools.ts";
import type { SearchPort } from "../ports/search.ts";
import type { SessionPort } from "../ports/session.ts";
import type { RestoredCopy } from "../ports/sessions.ts";
import type { PublicRequest } from "../ports/web.ts";
import type { Bucket } from "../storage/bucket.ts";
import { tellingBucket, WrittenFiles } from "../storage/telling-bucket.ts";
import type { BasePorts } from "./features.ts";
import { composeNativeTools, withPackTools } from "./native-tools.ts";

export interface Parts {
  /** The Worker of a channel, when one is bound as `CHANNEL_{NAME}`. */
  channel(env: Env, name: string): ChannelService | undefined;
  channelNames(env: Env): readonly string[];
  /** A session by its canonical key. */
  session(env: Env, key: string): SessionPort;
  /** An agent's search index. */
  search(env: Env, agentId: string): SearchPort;
  /** The object of a job. */
  job(env: Env, id: string): JobPort;
  jobsIndex(env: Env): IndexSpace;
  /** The queue of domain events, or that of a pack. */
  eventQueue(env: Env, name?: string): EventQueue | undefined;
  packs(): PackList;
  /** Requests of packs to the services that their settings name. */
  fetch(url: string, init: RequestInit): Promise<Response>;
  model(env: Env): ModelClient;
  nativeTools(bucket: Bucket, env: Env, log: Logger): NativeTools;
  /** As `WebPort.web`. */
  publicFetch(env: Env, url: string, request: PublicRequest): Promise<Response> | undefined;
  timeLimit(ms: number): AbortSignal;
  movable(env: Env, kind: ObjectKind, key: string): MovablePort;
  restoredCopy(env: Env): RestoredCopy | undefined;
  /** Ends this incarnation of the gateway's object. */
  restart(ctx: DurableObjectState): void;
  embedding(env: Env): BasePorts["embedding"];
  vectorIndex(env: Env): BasePorts["vectorIndex"];
}

export const parts: Parts = {
  channel: channelService,
  channelNames,
  session: (env, key) => env.SESSION.getByName(key),
  search: (env, agentId) => env.SEARCH.getByName(agentId),
  job: (env, id) => env.JOB.getByName(id),
  jobsIndex: (env) => env.JOBS_INDEX,
  eventQueue,
  packs: () => PACKS,
  fetch: (url, init) => fetch(url, init),
  model: (env) => createModelClient({ ai: env.AI }),
  nativeTools: (bucket, env, log) => composeNativeTools(bucket, { readers: env.READERS, log }),
  publicFetch,
  timeLimit: (ms) => AbortSignal.timeout(ms),
  movable: (env, kind, key) => (kind === "session" ? env.SESSION : env.JOB).getByName(key),
  restoredCopy,
  restart: (ctx) => ctx.abort("the home was imported"),
  embedding: ({ AI }) => ({ ai: AI, fetch: (input, init) => globalThis.fetch(input, init) }),
  vectorIndex: ({ VECTORS }) => VECTORS,
};

/** Throws when two features register one topic. */
function topicsOf(features: readonly FeatureTables[]): ReadonlyMap<string, Topic> {
  const list = new TopicList();
  for (const { name, topics } of features) list.add(name, topics ?? []);
  return list.close();
}

/** The kernel with every feature, and the ports that the features offer. Migrates the tables first. */
export function composeGateway<Ports>(ctx: DurableObjectState, env: Env, port: GatewayPort, list: FeatureList<BasePorts, Ports>) {
  const { storage } = ctx;
  migrateFeatures(storage, KERNEL_TABLES, list.definitions);
  answerPings(ctx);
  const secrets = new SecretValues();
  const log = createLogger({ component: "gateway", clock: systemClock, secrets, sink: consoleSink });
  const kernel = new Kernel({
    storage,
    sockets: ctx,
    clock: systemClock,
    log,
    ids: { name: randomName, bytes: (length) => crypto.getRandomValues(new Uint8Array(length)), sha256: sha256Hex },
    secrets,
    sealing: { keys: sealingKeys(env), nonce: () => crypto.getRandomValues(new Uint8Array(SEAL_NONCE_BYTES)) },
    waitUntil: (work) => ctx.waitUntil(work),
    version: versionOf(env),
    allowedOrigins: allowedOrigins(env),
    firstTokenHash: bootstrapTokenHash(env),
    unservedEvents: [],
  });
  const writtenFiles = new WrittenFiles(randomName(16));
  const bucket = tellingBucket(env.STORAGE, () => writtenFiles.written());
  const native = parts.nativeTools(bucket, env, log);
  const topics = topicsOf(list.definitions);
  const packs = new Packs({
    ...kernel.ports,
    list: parts.packs(),
    core: { tools: new Set(native.entries.map(({ definition }) => definition.name)), topics },
    fetch: (url, init) => parts.fetch(url, init),
    limit: (ms) => parts.timeLimit(ms),
    after: afterTimeout,
    wait: (ms) => new Promise((resolve) => void setTimeout(resolve, ms)),
  });
  const { features, ports } = list.create({
    ...kernel.ports,
    admission: kernel.admission,
    bucket,
    writtenFiles,
    rowDatabase: env.DB,
    vectorIndex: parts.vectorIndex(env),
    session: (key) => parts.session(env, key),
    searchIndex: (agentId) => parts.search(env, agentId),
    job: (id) => parts.job(env, id),
    jobsIndex: () => parts.jobsIndex(env),
    eventQueue: (name) => parts.eventQueue(env, name),
    packs: packs.port(),
    topics: allTopics(topics, () => packs.topics()),
    channel: (name) => parts.channel(env, name),
    channelNames: () => parts.channelNames(env),
    model: parts.model(env),
    native: withPackTools(native, () => packs.entries()),
    port,
    web: { fetch: (url, request) => parts.publicFetch(env, url, request), limit: (ms) => parts.timeLimit(ms) },
    embedding: parts.embedding(env),
    collector: { version: versionOf(env), fetch: (url, init) => parts.fetch(url, init) },
    after: (ms, work) => void setTimeout(work, ms),
    addGcPressure: isEmbedded(env) ? gcPressure(log) : () => undefined,
    restoredCopy: parts.restoredCopy(env),
    movable: (kind, key) => parts.movable(env, kind, key),
    movedState: async () => (await import("./moved-state.lazy.ts")).movedState(env.DB),
    restart: () => parts.restart(ctx),
    version: versionOf(env),
  });
  kernel.start(features);
  return { kernel, ports, ready: () => packs.ready() };
}

/** Says once that memory is freed late. Files pass all the same. */
function gcPressure(log: Logger): (bytes: number) => void {
  let isLate = false;
  return (bytes) => {
    if (addGcPressure(bytes) || isLate) return;
    isLate = true;
    log.warn("gc_pressure_failed");
  };
}
