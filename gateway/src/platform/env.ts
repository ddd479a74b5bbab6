/**
 * The typed bindings of the Worker. Only this module reads secrets and settings of the deployment; everything that a
 * person sets at run time belongs to the configuration, not here.
 */
import type { ChannelService } from "../../../protocol/gen/services.ts";
import { type ReadKeys, readSealingKeys } from "../../../protocol/runtime/sealing.ts";
import type { ChannelPort, WebhookChannel } from "../ports/channels.ts";
import type { EventConsumerPort, EventQueue } from "../ports/events.ts";
import type { GatewayPort } from "../ports/gateway.ts";
import type { HttpPort } from "../ports/http.ts";
import type { SpeechAi } from "../ports/media.ts";
import type { IndexSpace, JobHostPort, JobPort, JobsHttpPort } from "../ports/jobs.ts";
import type { ModelAi } from "../ports/model.ts";
import type { MovablePort } from "../ports/moving.ts";
import type { Readers } from "../ports/readers.ts";
import type { SearchPort } from "../ports/search.ts";
import type { SessionPort } from "../ports/session.ts";
import type { RestoredCopy } from "../ports/sessions.ts";
import type { VectorBinding } from "../ports/vector-index.ts";
import type { PublicRequest } from "../ports/web.ts";

/** A Durable Object with the port that it serves. */
type ObjectOf<Port> = Rpc.DurableObjectBranded & Port;
export type GatewayObject = ObjectOf<GatewayPort & ChannelPort & HttpPort & JobsHttpPort & JobHostPort & EventConsumerPort>;

export interface Env {
  readonly GATEWAY: DurableObjectNamespace<GatewayObject>;
  readonly SESSION: DurableObjectNamespace<ObjectOf<SessionPort & MovablePort>>;
  readonly SEARCH: DurableObjectNamespace<ObjectOf<SearchPort>>;
  readonly JOB: DurableObjectNamespace<ObjectOf<JobPort & MovablePort>>;
  /** Summaries of jobs. */
  readonly JOBS_INDEX: IndexSpace;
  readonly STORAGE: R2Bucket;
  /** Rows of long-term memory. A deployment without it has none. */
  readonly DB?: D1Database;
  /** Vectorize, for the vectors of long-term memory. Optional, and only on Cloudflare. */
  readonly VECTORS?: VectorBinding;
  /** Domain events. A deployment without it has none. */
  readonly EVENTS?: EventQueue;
  /** Workers AI, for models and speech to text. Only on Cloudflare. */
  readonly AI?: SpeechAi & ModelAi;
  /** Readers in isolates of their own: on the owner's machine only. Elsewhere they are imported. */
  readonly READERS?: Readers;
  /** For READERS: starts Workers from their code. */
  readonly LOADER?: WorkerLoader;
  /** For READERS: the folder with the modules. */
  readonly MODULES?: Pick<Fetcher, "fetch">;
  /** The network without addresses of this machine and of local networks: on the owner's machine only. */
  readonly PUBLIC_WEB?: Pick<Fetcher, "fetch">;
  /** Version of the program, for /health and hello-ok. */
  readonly VERSION?: string;
  /** `cloudflare` on the edge. Any other value, or none, means the owner's machine; there the Host header is checked too. */
  readonly ENVIRONMENT?: string;
  /** sha256, in hex, of the first admin token. Imported into the token table at first use. */
  readonly BOOTSTRAP_TOKEN_HASH?: string;
  /** The id of a restored copy, which stays stopped while this is set. */
  readonly START_STOPPED?: string;
  /** The command that lets this copy act. */
  readonly RESUME_COPY?: string;
  /** Keys of the stored secrets, of 64 hex digits each, separated by spaces. The first one seals, the others only open. */
  readonly SEALING_KEYS?: string;
  /** Browser origins that may connect, beside `auth.allowedOrigins`; separated by commas. */
  readonly ALLOWED_ORIGINS?: string;
  /** Host names under which an embedded gateway may be reached, beside loopback; separated by commas. */
  readonly ALLOWED_HOSTS?: string;
}

/**
 * Leads to public addresses only, also for a name that others resolve to a local one: the runtime checks the address that it connects to.
 * On Cloudflare each request is such a one. Undefined: this machine's gateway was started without that network.
 */
export function publicFetch(env: Env, url: string, { headers, ...request }: PublicRequest): Promise<Response> | undefined {
  const init = { ...request, headers: { ...headers } };
  if (isEmbedded(env)) return env.PUBLIC_WEB?.fetch(url, init);
  return globalThis.fetch(url, init);
}

/** The queue of domain events; with a name, that of a pack, bound as `EVENTS_{NAME}`. A pack whose queue is not bound uses the first. */
export function eventQueue(env: Env, name?: string): EventQueue | undefined {
  if (name === undefined) return env.EVENTS;
  const binding = `EVENTS_${name.toUpperCase().replaceAll("-", "_")}`;
  return Object.hasOwn(env, binding) ? ((env as Env & Readonly<Record<string, unknown>>)[binding] as EventQueue) : env.EVENTS;
}

const list = (text: string | undefined): readonly string[] =>
  (text ?? "")
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");

export const versionOf = (env: Env): string => env.VERSION ?? "0.1.0";
export const isEmbedded = (env: Env): boolean => env.ENVIRONMENT !== "cloudflare";
export const allowedOrigins = (env: Env): readonly string[] => list(env.ALLOWED_ORIGINS);
export const allowedHosts = (env: Env): readonly string[] => list(env.ALLOWED_HOSTS).map((host) => host.toLowerCase());
export const bootstrapTokenHash = (env: Env): string | undefined => {
  const hash = env.BOOTSTRAP_TOKEN_HASH?.trim().toLowerCase();
  return hash !== undefined && /^[0-9a-f]{64}$/.test(hash) ? hash : undefined;
};
export const restoredCopy = (env: Env): RestoredCopy | undefined => {
  const id = env.START_STOPPED?.trim() ?? "";
  return id === "" ? undefined : { id, resume: env.RESUME_COPY };
};
export const sealingKeys = (env: Env): ReadKeys => readSealingKeys(env.SEALING_KEYS);

/** Channels are bound as `CHANNEL_{NAME}`, so adding a channel changes only the deployment. */
const CHANNEL_BINDING = /^CHANNEL_([A-Z][A-Z0-9_]{0,62})$/;
export const channelNames = (env: Env): readonly string[] =>
  Object.keys(env)
    .flatMap((name) => CHANNEL_BINDING.exec(name)?.[1]?.toLowerCase() ?? [])
    .sort();
export function channelService(env: Env, name: string): ChannelService | undefined {
  const binding = `CHANNEL_${name.toUpperCase()}`;
  if (!CHANNEL_BINDING.test(binding) || !Object.hasOwn(env, binding)) return undefined;
  return (env as Env & Readonly<Record<string, unknown>>)[binding] as ChannelService;
}
/** The channel's Worker as an HTTP service. Names are lower case here, so each channel has one address. */
export function webhookChannel(env: Env, name: string): WebhookChannel | undefined {
  return name === name.toLowerCase() ? (channelService(env, name) as (ChannelService & WebhookChannel) | undefined) : undefined;
}
