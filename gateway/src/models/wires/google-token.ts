/** Access tokens of Google service accounts: a signed assertion is exchanged for a token, which is kept in memory until it expires. */
import { isJsonObject } from "../../../../protocol/runtime/json-object.ts";
import type { ServiceAccount } from "../cloud.ts";
import type { Fetch } from "../transport.ts";

const SCOPE = "https://www.googleapis.com/auth/cloud-platform";
const LIFETIME_S = 3600;
/** A token is renewed this long before its end, so that it does not expire during a call. */
const EARLY_MS = 600_000;
const tokens = new Map<string, { readonly token: string; readonly until: number }>();

const base64Url = (bytes: Uint8Array): string =>
  btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
const encode = (value: unknown): string => base64Url(new TextEncoder().encode(JSON.stringify(value)));

/** Throws when the key is not valid, and when the server refuses it. `fetch` records what was wrong with its answer. */
export async function googleToken(account: ServiceAccount, fetch: Fetch, now: number, signal: AbortSignal): Promise<string> {
  const known = tokens.get(account.email);
  if (known !== undefined && known.until > now) return known.token;
  const issued = Math.floor(now / 1000);
  const claims = { iss: account.email, scope: SCOPE, aud: account.tokenUri, iat: issued, exp: issued + LIFETIME_S };
  const unsigned = `${encode({ alg: "RS256", typ: "JWT" })}.${encode(claims)}`;
  const response = await fetch(account.tokenUri, {
    method: "POST",
    headers: { "Content-Type": "application/x-www-form-urlencoded" },
    body: new URLSearchParams({
      grant_type: "urn:ietf:params:oauth:grant-type:jwt-bearer",
      assertion: `${unsigned}.${base64Url(await sign(account.privateKey, unsigned))}`,
    }).toString(),
    signal,
  });
  const answer: unknown = await response.json();
  const token = isJsonObject(answer) ? answer["access_token"] : undefined;
  if (typeof token !== "string") throw new Error("no access token");
  const seconds = isJsonObject(answer) && typeof answer["expires_in"] === "number" ? answer["expires_in"] : LIFETIME_S;
  tokens.set(account.email, { token, until: now + seconds * 1000 - EARLY_MS });
  return token;
}

async function sign(pem: string, text: string): Promise<Uint8Array> {
  const der = Uint8Array.from(atob(pem.replace(/-----[A-Z ]+-----/g, "").replace(/\s+/g, "")), (char) => char.charCodeAt(0));
  const algorithm = { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("pkcs8", der, algorithm, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign(algorithm, key, new TextEncoder().encode(text)));
}
