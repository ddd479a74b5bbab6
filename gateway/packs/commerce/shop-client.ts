/**
 * Asks Shopify's Admin GraphQL API. Waits and asks again where Shopify says that it is busy; every request that changes something must
 * carry an idempotency key for that reason. Follows no redirect, because the token would go with it.
 */
import type { Static, TSchema } from "typebox";
import { Value } from "typebox/value";
import { backoffMs } from "../../../protocol/runtime/backoff.ts";
import { isJsonObject } from "../../../protocol/runtime/json-object.ts";
import { isTooDeep, readBounded, TOO_DEEP } from "../../src/packs/answers.ts";
import type { PackContext } from "../../src/packs/pack.ts";
import { type Failure, failure, type Result, succeed } from "../../src/ports/result.ts";

/** The first version in which refunds need an idempotency key. */
const API_VERSION = "2026-04";
const ATTEMPTS = 5;
const TIME_LIMIT_MS = 15_000;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 8_000;
const MAX_ANSWER_BYTES = 2_097_152;
const SHOWN_CHARS = 300;

export interface Question<S extends TSchema> {
  readonly query: string;
  readonly variables: Readonly<Record<string, unknown>>;
  /** Of `data`. */
  readonly answer: S;
}
type Attempt =
  | { readonly kind: "end"; readonly result: Result<unknown> }
  | { readonly kind: "again"; readonly pauseMs?: number; readonly why: string };
const end = (result: Result<unknown>): Attempt => ({ kind: "end", result });

export async function ask<S extends TSchema>(context: PackContext, question: Question<S>): Promise<Result<Static<S>>> {
  const { settings, secrets, wait } = context;
  const { shop } = settings;
  const { token } = secrets;
  if (shop === undefined) return missing("The shop's domain is not set.", "gsv config set packs.settings.commerce.shop acme.myshopify.com");
  if (token === undefined) return missing("The shop's access token is not set.", "gsv config set packs.secrets.commerce.token -");
  const url = `${shop.startsWith("http:") ? shop : `https://${shop}`}/admin/api/${API_VERSION}/graphql.json`;
  let why = "";
  for (let tries = 1; tries <= ATTEMPTS; tries++) {
    const attempt = await once(context, url, token, question);
    if (attempt.kind === "end") {
      if (!attempt.result.ok) return attempt.result;
      const { value } = attempt.result;
      // Without what was not asked for.
      if (Value.Check(question.answer, value)) return succeed(Value.Clean(question.answer, value) as Static<S>);
      return failure("pack.unavailable", "Shopify's answer does not have the expected form.");
    }
    why = attempt.why;
    if (tries < ATTEMPTS) await wait(Math.min(attempt.pauseMs ?? backoffMs(tries, FIRST_PAUSE_MS, LONGEST_PAUSE_MS), LONGEST_PAUSE_MS));
  }
  return failure("pack.unavailable", `Shopify did not answer, after ${ATTEMPTS} attempts: ${why}`);
}
const missing = (message: string, command: string): Failure => ({
  ok: false,
  error: { reason: "pack.not_configured", message, hint: `Set it: \`${command}\`.` },
});

async function once(
  { fetch, limit, excerpt }: PackContext,
  url: string,
  token: string,
  { query, variables }: Omit<Question<TSchema>, "answer">,
): Promise<Attempt> {
  let response: Response;
  let text: string | undefined;
  try {
    response = await fetch(url, {
      method: "POST",
      redirect: "manual",
      headers: { "content-type": "application/json", "x-shopify-access-token": token },
      body: JSON.stringify({ query, variables }),
      signal: limit(TIME_LIMIT_MS),
    });
    text = await readBounded(response, MAX_ANSWER_BYTES);
  } catch {
    return { kind: "again", why: "the connection failed or took too long." };
  }
  const { status } = response;
  if (status === 429) return { kind: "again", why: "it limits requests.", ...pauseOf(response.headers.get("retry-after")) };
  if (status >= 500) return { kind: "again", why: `it answered with status ${status}.` };
  if (status === 401 || status === 403)
    return end(failure("pack.rejected", "Shopify rejected the access token, or the token lacks a right.", "Set another one."));
  if (status !== 200) return end(failure("pack.rejected", `Shopify answered with status ${status}.`, "Check the shop's domain."));
  if (text === undefined)
    return end(failure("pack.rejected", `Shopify's answer has more than ${MAX_ANSWER_BYTES} bytes.`, "Ask for less."));
  return readAnswer(text, excerpt);
}
function readAnswer(text: string, excerpt: PackContext["excerpt"]): Attempt {
  if (isTooDeep(text)) return end(failure("pack.rejected", TOO_DEEP));
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return { kind: "again", why: "its answer was no JSON." };
  }
  if (!isJsonObject(body)) return { kind: "again", why: "its answer was no JSON object." };
  const errors = Array.isArray(body["errors"]) ? body["errors"].filter(isJsonObject) : [];
  const codeOf = ({ extensions }: Readonly<Record<string, unknown>>): unknown =>
    isJsonObject(extensions) ? extensions["code"] : undefined;
  if (errors.some((error) => codeOf(error) === "THROTTLED"))
    return { kind: "again", why: "it limits queries.", ...throttlePause(body["extensions"]) };
  if (errors.some((error) => codeOf(error) === "INTERNAL_SERVER_ERROR")) return { kind: "again", why: "it had an internal error." };
  if (errors.length > 0) {
    const said = errors.map(({ message }) => String(message)).join("; ");
    return end(failure("pack.rejected", `Shopify refused the query: ${excerpt(said, SHOWN_CHARS)}`));
  }
  return end(succeed(body["data"]));
}
const pauseOf = (seconds: string | null): { readonly pauseMs?: number } =>
  seconds !== null && /^\d+(\.\d+)?$/.test(seconds) ? { pauseMs: Math.ceil(Number(seconds) * 1000) } : {};
/** Until the bucket of query costs has enough again. */
function throttlePause(extensions: unknown): { readonly pauseMs?: number } {
  const cost = isJsonObject(extensions) ? extensions["cost"] : undefined;
  const status = isJsonObject(cost) ? cost["throttleStatus"] : undefined;
  if (!isJsonObject(cost) || !isJsonObject(status)) return {};
  const [asked, available, rate] = [cost["requestedQueryCost"], status["currentlyAvailable"], status["restoreRate"]];
  if (typeof asked !== "number" || typeof available !== "number" || typeof rate !== "number" || rate <= 0) return {};
  return { pauseMs: Math.max(0, Math.ceil(((asked - available) / rate) * 1000)) };
}
export interface Page<T> {
  readonly nodes: readonly T[];
  readonly pageInfo: { readonly hasNextPage: boolean; readonly endCursor: string | null };
}
const PAGE = 50;
/** The first `most` items, page by page. */
export async function pages<T>(
  most: number,
  page: (first: number, after: string | null) => Promise<Result<Page<T>>>,
): Promise<Result<{ readonly items: readonly T[]; readonly more: boolean }>> {
  const items: T[] = [];
  let after: string | null = null;
  for (;;) {
    const next = await page(Math.min(PAGE, most - items.length), after);
    if (!next.ok) return next;
    const { nodes, pageInfo } = next.value;
    const { hasNextPage, endCursor } = pageInfo;
    items.push(...nodes);
    // A page that brings nothing would be asked for without an end.
    const isLast = !hasNextPage || endCursor === null || endCursor === after || nodes.length === 0;
    after = endCursor;
    if (isLast || items.length >= most) return succeed({ items: items.slice(0, most), more: hasNextPage });
  }
}
