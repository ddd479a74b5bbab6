/**
 * The bindings of the Worker, typed. Secrets and settings of the deployment are read here and nowhere else; everything a
 * person sets at run time is configuration (`config/`), not environment.
 */
import type { Gateway } from "./gateway/gateway-do.ts";
import type { SpeechAi } from "./media/transcribe.ts";
import type { SearchIndex } from "./search/search-index-do.ts";
import type { Session } from "./session/session-do.ts";

export interface Env {
  readonly GATEWAY: DurableObjectNamespace<Gateway>;
  readonly SESSION: DurableObjectNamespace<Session>;
  readonly SEARCH: DurableObjectNamespace<SearchIndex>;
  readonly STORAGE: R2Bucket;
  /** Workers AI, for speech to text. Only on Cloudflare. */
  readonly AI?: SpeechAi;
  /** Version of the program, shown by /health and in hello-ok. */
  readonly VERSION?: string;
  /** `cloudflare` on the edge; anything else, or nothing, is a machine of one's own, where the Host header is checked too. */
  readonly ENVIRONMENT?: string;
  /** sha256, in hex, of the first admin token. Imported into the token table at first use. */
  readonly BOOTSTRAP_TOKEN_HASH?: string;
  /** Browser origins that may connect, beside `auth.allowedOrigins`; separated by commas. */
  readonly ALLOWED_ORIGINS?: string;
  /** Host names under which an embedded gateway may be reached, beside loopback; separated by commas. */
  readonly ALLOWED_HOSTS?: string;
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
