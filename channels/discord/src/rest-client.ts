/**
 * Discord's REST API through @discordjs/rest, which keeps the rate limits. Errors become a `RestFailure` without texts and tokens. No
 * retries: the durable outbox retries.
 */
import { API } from "@discordjs/core/http-only";
import { DiscordAPIError, HTTPError, REST, RateLimitError } from "@discordjs/rest";
import type { RestFailure } from "./map-outbound.ts";
import type { Settings } from "./settings.ts";

/** Longer waits belong to the outbox, so that other messages can go first. */
const MAX_WAIT_MS = 10_000;
const TIMEOUT_MS = 30_000;

export interface RestClient {
  readonly rest: REST;
  readonly api: API;
  /** Requests under way or queued. */
  readonly waiting: () => number;
  /** The library drops a token that was refused once. */
  readonly renew: () => void;
  /** Runs a request and counts it. */
  readonly run: <T>(request: (api: API) => Promise<T>) => Promise<T>;
}

export function restClient({ token, api: base }: Settings): RestClient {
  const rest = new REST({
    version: "10",
    api: base,
    retries: 0,
    timeout: TIMEOUT_MS,
    rejectOnRateLimit: ({ retryAfter, timeToReset }) => Math.max(retryAfter, timeToReset) > MAX_WAIT_MS,
    // The object does not live long enough for the library's sweepers.
    hashSweepInterval: 0,
    handlerSweepInterval: 0,
  }).setToken(token);
  const api = new API(rest);
  let waiting = 0;
  return {
    rest,
    api,
    waiting: () => waiting,
    renew: () => void rest.setToken(token),
    run: async (request) => {
      waiting++;
      try {
        return await request(api);
      } finally {
        waiting--;
      }
    },
  };
}

export function failureOf(error: unknown): RestFailure {
  if (error instanceof RateLimitError) return { retryAfterMs: Math.max(error.retryAfter, error.timeToReset), message: "rate limit" };
  if (error instanceof DiscordAPIError)
    return { status: error.status, message: "refused", ...(typeof error.code === "number" ? { code: error.code } : {}) };
  if (error instanceof HTTPError) return { status: error.status, message: "server error" };
  // The message may contain a URL with a token.
  return { message: error instanceof Error ? error.name : "no answer" };
}
