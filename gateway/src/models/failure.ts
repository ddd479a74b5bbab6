/**
 * What went wrong in a model call, as the contract's reasons and as sentences (promises P5). PURE.
 * Never lets a key, a header's value or a provider's control characters into a message.
 */
import { getOverflowPatterns } from "@mariozechner/pi-ai/utils/overflow";
import { isJsonObject } from "../../../protocol/runtime/json-object.ts";
import { HIDDEN, hideValues, spellingsOf } from "../../../protocol/runtime/secret-shapes.ts";
import { hintsOf } from "../calls/task-advice.ts";
import type { ModelOutcome } from "../ports/model.ts";
import type { GsvError } from "../ports/result.ts";
import type { Target } from "./resolve.ts";

export type Failed = Extract<ModelOutcome, { kind: "failed" }>;

/** What the transport saw. Separate from pi-ai's errors, whose texts are written for a terminal. */
export type Fault =
  | { readonly kind: "http"; readonly status: number; readonly body: string; readonly retryAfterMs?: number }
  | { readonly kind: "in_band"; readonly body: string }
  | { readonly kind: "redirect"; readonly status: number; readonly location?: string }
  | { readonly kind: "not_a_stream"; readonly contentType: string }
  | { readonly kind: "unreachable"; readonly cause: string }
  | { readonly kind: "broken"; readonly cause: string }
  | { readonly kind: "garbage" }
  | { readonly kind: "too_large" }
  | { readonly kind: "timeout"; readonly phase: "first_byte" | "idle" | "whole"; readonly ms: number };

const EXCERPT_CHARS = 300;
const KEY_LIKE = /\b(?:sk|pk|gsk|xai|key|tok|AIza|csk|nvapi|hf)[-_][A-Za-z0-9*_-]{6,}|\bAIza[A-Za-z0-9_-]{10,}/g;

/** A provider's error text, short and without secrets. */
export function excerpt(text: string, secrets: readonly string[]): string {
  const clean = hideValues(text, spellingsOf(secrets.filter((secret) => secret.length >= 4)))
    // After the secrets are hidden: a secret that is cut is not found.
    .slice(0, 8192)
    .replace(KEY_LIKE, HIDDEN)
    .replace(/[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]+/g, " ")
    .replace(/\s+/g, " ")
    .trim();
  return clean.length > EXCERPT_CHARS ? `${clean.slice(0, EXCERPT_CHARS)}...` : clean;
}
export const secretsOf = (target: Target): readonly string[] => [
  // A pair of keys is quoted in parts.
  ...(target.apiKey ? [target.apiKey, ...target.apiKey.split(":").filter((part) => part.length >= 16)] : []),
  ...Object.values(target.headers),
];

interface ProviderError {
  readonly type: string;
  readonly status?: number;
  readonly message: string;
}
/** Reads the common shapes: `{error: {type, message, code}}`, `{type: "error", error: {...}}`, `{message}`, `[{error}]`, plain text. */
export function readProviderError(body: string): ProviderError {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    const text = /^\s*</.test(body) ? "" : body;
    return { type: "", message: text };
  }
  if (Array.isArray(value)) value = value[0];
  const inner: unknown = isJsonObject(value) && value["error"] !== undefined ? value["error"] : value;
  if (typeof inner === "string") return { type: "", message: inner };
  if (!isJsonObject(inner)) return { type: "", message: "" };
  const word = (key: string): string => (typeof inner[key] === "string" ? inner[key] : "");
  const code = inner["code"] ?? inner["status"];
  const status = typeof code === "number" && code >= 400 && code < 600 ? code : undefined;
  return {
    type: word("type") || word("code") || word("status"),
    message: word("message") || word("detail"),
    ...(status === undefined ? {} : { status }),
  };
}

const NOT_OVERFLOW = /rate limit|too many requests|throttl/i;
const OVERFLOW = getOverflowPatterns();
export const isOverflow = (text: string): boolean => !NOT_OVERFLOW.test(text) && OVERFLOW.some((pattern) => pattern.test(text));

const IN_BAND_STATUS: Readonly<Record<string, number>> = {
  overloaded_error: 529,
  rate_limit_error: 429,
  rate_limit_exceeded: 429,
  api_error: 500,
  server_error: 500,
  internal_error: 500,
  timeout_error: 504,
  invalid_request_error: 400,
  authentication_error: 401,
  permission_error: 403,
  billing_error: 402,
  not_found_error: 404,
  request_too_large: 413,
};

/** `retry-after` in seconds or as an HTTP date, `retry-after-ms` in milliseconds. */
export function parseRetryAfter(headers: Headers, now: number): number | undefined {
  const precise = headers.get("retry-after-ms");
  if (precise !== null && /^\d+(\.\d+)?$/.test(precise.trim())) return Math.round(Number(precise));
  const value = headers.get("retry-after")?.trim();
  if (!value) return undefined;
  if (/^\d+(\.\d+)?$/.test(value)) return Math.round(Number(value) * 1000);
  const at = Date.parse(value);
  return Number.isNaN(at) ? undefined : Math.max(0, at - now);
}

/** The error has a hint of its own in any case: people in chats get no table. */
const failed = (
  reason: GsvError["reason"],
  message: string,
  { retryable = false, retryAfterMs, hints = hintsOf(reason) }: FailureOptions = {},
): Failed => ({
  kind: "failed",
  error: { reason, message, ...hints },
  retryable,
  ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
});
type Hints = Pick<GsvError, "taskHint"> & { readonly hint: string };
interface FailureOptions {
  readonly retryable?: boolean;
  readonly retryAfterMs?: number | undefined;
  /** Absent: those of the reason. */
  readonly hints?: Hints;
}

function ofStatus(target: Target, status: number, body: string, retryAfterMs: number | undefined): Failed {
  const said = readProviderError(body);
  const words = excerpt(said.message, secretsOf(target));
  const quote = words === "" ? "" : ` It says: "${words}".`;
  const who = target.providerName;
  const later = { retryable: true, retryAfterMs };
  // Google answers 400 to a wrong key.
  if (status === 400 && /api key not valid|api_key_invalid/i.test(said.message)) return ofStatus(target, 401, body, retryAfterMs);
  if (
    status < 429 &&
    status >= 400 &&
    status !== 401 &&
    status !== 402 &&
    status !== 403 &&
    status !== 408 &&
    isOverflow(`${said.type} ${said.message}`)
  ) {
    return failed("model.context_overflow", `The conversation is too long for ${target.id} (${who}).${quote}`);
  }
  switch (status) {
    case 401:
    case 403:
      return failed("model.auth", `${who} refused the key (HTTP ${status}).${status === 403 ? quote : ""}`, {
        hints: { hint: `Set a valid key: \`gsv config set apiKeys.${target.provider} -\`.` },
      });
    case 402:
      return failed("model.rejected", `${who} requires payment (HTTP 402).${quote}`, {
        hints: { hint: "Check the account's balance." },
      });
    case 404:
      return failed("model.rejected", `${who} does not know the model ${target.id}, or the address is wrong (HTTP 404).${quote}`, {
        hints: { hint: `Check \`model.id\`${target.addressSetting === undefined ? "" : ` and \`${target.addressSetting}\``}.` },
      });
    case 413:
      return failed("model.rejected", `The request is too large for ${who} (HTTP 413).${quote}`, {
        hints: hintsOf("model.context_overflow"),
      });
    case 408:
    case 504:
      return failed("model.timeout", `${who} did not answer in time (HTTP ${status}).${quote}`, later);
    case 429:
      return failed("model.rate_limited", `${who} rejected the request because of a rate limit (HTTP 429).${quote}`, later);
    case 503:
    case 529:
      return failed("model.overloaded", `${target.id} is overloaded (HTTP ${status}).${quote}`, later);
    case 502:
      return failed("model.unreachable", `${who} can't reach the model's server (HTTP 502).${quote}`, {
        ...later,
        hints: hintsOf("run.no_progress"),
      });
    default:
      if (status >= 500) return failed("model.bad_answer", `${who} failed (HTTP ${status}).${quote}`, later);
      if (status === 409 || status === 425)
        return failed("model.overloaded", `${who} is temporarily unavailable (HTTP ${status}).${quote}`, later);
      return failed("model.rejected", `${who} refused the request (HTTP ${status}).${quote}`);
  }
}

const PHASES = {
  first_byte: "sent nothing",
  idle: "stopped sending in the middle of its answer",
  whole: "did not finish its answer",
} as const;

/** The advice names the setting that the address comes from, and none when the address is built in. */
function checkAddress({ addressSetting, custom, providerName }: Target): string {
  if (addressSetting !== undefined) return `Check \`${addressSetting}\`.`;
  return custom
    ? `Check that ${providerName} is what answers at that address.`
    : "Check the network: a proxy or a login page may answer in the server's place.";
}
function unreachableHint({ addressSetting, custom, provider, providerName }: Target): string {
  if (addressSetting !== undefined) return `Check that the server runs, the network and the setting \`${addressSetting}\`.`;
  return custom
    ? `Start ${providerName} on the gateway's machine. If it runs elsewhere: \`gsv config set providers.${provider} '{"baseUrl":"http://host/v1","wire":"openai-completions"}'\`.`
    : "Check the network of the gateway's machine.";
}

/** The outcome for a transport fault. */
export function classify(target: Target, fault: Fault): Failed {
  const who = target.providerName;
  const host = new URL(target.baseUrl).host;
  switch (fault.kind) {
    case "http":
      return ofStatus(target, fault.status, fault.body, fault.retryAfterMs);
    case "in_band": {
      const said = readProviderError(fault.body);
      // Without a known type it counts as a server failure in the middle of an answer.
      const status =
        (Object.hasOwn(IN_BAND_STATUS, said.type) ? IN_BAND_STATUS[said.type] : undefined) ??
        said.status ??
        (isOverflow(`${said.type} ${said.message}`) ? 400 : 500);
      return ofStatus(target, status, fault.body, undefined);
    }
    case "redirect":
      return failed(
        "model.rejected",
        `The model's server ${host} answered with a redirect (HTTP ${fault.status})${fault.location === undefined ? "" : ` to ${fault.location}`}, which is not followed because the key would be sent to the new address.`,
        {
          hints: {
            hint: target.addressSetting === undefined ? checkAddress(target) : `Set \`${target.addressSetting}\` to the final address.`,
          },
        },
      );
    case "not_a_stream":
      return failed("model.bad_answer", `${host} answered with ${fault.contentType || "something"} where a model's stream was expected.`, {
        retryable: true,
        hints: { hint: checkAddress(target) },
      });
    case "unreachable":
      return failed(
        "model.unreachable",
        `The model's server ${host} can't be reached${fault.cause === "" ? "" : ` (${excerpt(fault.cause, secretsOf(target))})`}.`,
        { retryable: true, hints: { hint: unreachableHint(target) } },
      );
    case "broken":
      return failed("model.bad_answer", `The answer of ${who} broke off before its end.`, { retryable: true });
    case "garbage":
      return failed("model.bad_answer", `${who} sent something that is not a valid answer.`, { retryable: true });
    case "too_large":
      return failed("model.bad_answer", `The answer of ${target.id} exceeded the size limit and was stopped.`, {
        hints: { hint: "Ask for a shorter answer." },
      });
    case "timeout":
      return failed("model.timeout", `${target.id} (${who}) ${PHASES[fault.phase]} for ${Math.round(fault.ms / 1000)} seconds.`, {
        retryable: true,
      });
  }
}
export const cancelled = (): Failed => failed("run.aborted", "The model call was stopped.");
export const refused = (target: Target, why: string): Failed =>
  failed("model.refused", `${target.id} declined to answer${why === "" ? "" : `: ${excerpt(why, secretsOf(target))}`}.`);
export const overflowed = (target: Target): Failed =>
  failed("model.context_overflow", `The conversation is too long for ${target.id} (${target.providerName}).`);
export const badAnswer = (message: string, more: Pick<FailureOptions, "retryable" | "hints">): Failed =>
  failed("model.bad_answer", message, more);
