/**
 * How the sender of a hook proves that it knows the secret (rules HK2, HK3). Reads the headers of each form, says which bytes are signed,
 * and compares in constant time. Knows no store; the time comes in as an argument.
 *
 * Sources: docs.github.com "Validating webhook deliveries"; docs.stripe.com "Verify webhook signatures manually"; the specification of
 * Standard Webhooks (standard-webhooks/standard-webhooks).
 */
import { toHex } from "../../../../protocol/runtime/hex.ts";
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { HookForm } from "../../../../protocol/gen/types.ts";

/** Names are lower case. */
export type HeaderMap = ReadonlyMap<string, string>;
/** What a request claims. `id` and `at` are trusted only when the signature fits and covers them. */
export interface Claim {
  /** The sender's id of the delivery. */
  readonly id?: string;
  /** Signed, in epoch ms. */
  readonly at?: number;
  /** What is signed before the body. */
  readonly prefix: string;
  /** Digests, any of which may fit. */
  readonly digests: readonly Uint8Array[];
}

const DIGEST_BYTES = 32;
/** While a secret is being changed, a sender signs with the old one too. */
const MAX_SIGNATURES = 8;
const STANDARD_SECRET = /^whsec_([A-Za-z0-9+/]{32,88}={0,2})$/;
const SECONDS = /^\d{1,12}$/;
/** Visible ASCII. */
const ID = /^[\x21-\x7e]{1,128}$/;

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);
/** The sender's id of a delivery. A digest stands for an id of another form, so that each sender's id tells a repeated delivery. */
export function deliveryId(text: string | undefined): { readonly id?: string } {
  if (text === undefined || text === "") return {};
  // Halves of surrogate pairs are all the same in UTF-8; JSON escapes them.
  const bytes = text.isWellFormed() ? text : JSON.stringify(text);
  return { id: ID.test(text) ? text : `sha256:${createHash("sha256").update(bytes).digest("hex")}` };
}
/** An id that is signed, as Standard Webhooks have it. */
const signedId = (text: string | undefined): string | undefined => (text !== undefined && ID.test(text) ? text : undefined);
const secondsOf = (text: string | undefined): { readonly at?: number } =>
  text !== undefined && SECONDS.test(text) ? { at: 1000 * Number(text) } : {};

/** Undefined: the headers of this form are missing or cannot be read. */
export function claimOf(form: HookForm, headers: HeaderMap): Claim | undefined {
  switch (form) {
    case "standard":
      return standardClaim(headers);
    case "github": {
      const digest = fromHex(/^sha256=([0-9a-f]{64})$/.exec(headers.get("x-hub-signature-256") ?? "")?.[1]);
      return digest && { ...deliveryId(headers.get("x-github-delivery")), prefix: "", digests: [digest] };
    }
    case "stripe":
      return stripeClaim(headers.get("stripe-signature") ?? "");
    case "bearer":
      // A sender that can sign need not send the secret itself.
      return standardClaim(headers);
  }
}
function standardClaim(headers: HeaderMap): Claim | undefined {
  const id = signedId(headers.get("webhook-id"));
  const seconds = headers.get("webhook-timestamp") ?? "";
  const { at } = secondsOf(seconds);
  // Each is a version and a digest; `v1a` and others are of other algorithms.
  const digests = (headers.get("webhook-signature") ?? "")
    .split(" ")
    .slice(0, MAX_SIGNATURES)
    .flatMap((word) => fromBase64(/^v1,([A-Za-z0-9+/]{43}=)$/.exec(word)?.[1]) ?? []);
  return id === undefined || at === undefined || digests.length === 0 ? undefined : { id, at, prefix: `${id}.${seconds}.`, digests };
}
/** `t=1614265330,v1=...,v1=...,v0=...`. The id is in the body. */
function stripeClaim(header: string): Claim | undefined {
  const parts = header.split(",").slice(0, MAX_SIGNATURES + 2);
  const seconds = parts.find((part) => part.startsWith("t="))?.slice(2) ?? "";
  const { at } = secondsOf(seconds);
  const digests = parts.flatMap((part) => fromHex(/^v1=([0-9a-f]{64})$/.exec(part)?.[1]) ?? []);
  return at === undefined || digests.length === 0 ? undefined : { at, prefix: `${seconds}.`, digests };
}

/** The bytes that sign: for Standard Webhooks those that the text after `whsec_` encodes, else the text itself. */
export function keyOf(form: HookForm, secret: string): Uint8Array | undefined {
  if (form !== "standard") return utf8(secret);
  const bytes = fromBase64(STANDARD_SECRET.exec(secret)?.[1]);
  return bytes === undefined || bytes.length < 24 || bytes.length > 64 ? undefined : bytes;
}

/**
 * The right digest, in hex, when one of the given ones is it and a signed time is near enough. The work depends on the sizes alone.
 */
export function signedDigest(claim: Claim, key: Uint8Array, body: Uint8Array, now: number): string | undefined {
  const expected = createHmac("sha256", key).update(claim.prefix).update(body).digest();
  let fits = 0;
  for (const digest of claim.digests) fits |= Number(timingSafeEqual(expected, digest));
  const isNear = claim.at === undefined || Math.abs(now - claim.at) <= LIMITS.hookToleranceMs;
  return fits === 1 && isNear ? toHex(expected) : undefined;
}
/** Whether the Authorization header has the secret. Digests are compared, so that the time tells nothing about the secret. */
export function hasBearer(headers: HeaderMap, secret: string): boolean {
  const given = /^Bearer +(\S+) *$/i.exec(headers.get("authorization") ?? "")?.[1] ?? "";
  const digest = (text: string) => createHmac("sha256", "gsv hook").update(text).digest();
  return timingSafeEqual(digest(given), digest(secret)) && given !== "";
}

/** The headers of a request that is signed now. */
export function sign(form: HookForm, key: Uint8Array, id: string, now: number, body: string): Readonly<Record<string, string>> {
  const seconds = String(Math.floor(now / 1000));
  const digest = (prefix: string): Uint8Array => createHmac("sha256", key).update(prefix).update(body).digest();
  switch (form) {
    case "github":
      return { "x-github-delivery": id, "x-hub-signature-256": `sha256=${toHex(digest(""))}` };
    case "stripe":
      return { "stripe-signature": `t=${seconds},v1=${toHex(digest(`${seconds}.`))}` };
    case "standard":
    case "bearer":
      return {
        "webhook-id": id,
        "webhook-timestamp": seconds,
        "webhook-signature": `v1,${toBase64(digest(`${id}.${seconds}.`))}`,
      };
  }
}

function fromHex(text: string | undefined): Uint8Array | undefined {
  if (text === undefined) return undefined;
  return Uint8Array.from({ length: DIGEST_BYTES }, (_, at) => Number.parseInt(text.slice(2 * at, 2 * at + 2), 16));
}
export const toBase64 = (bytes: Uint8Array): string => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
function fromBase64(text: string | undefined): Uint8Array | undefined {
  if (text === undefined) return undefined;
  try {
    return Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  } catch {
    return undefined;
  }
}
