/** HTTP errors as `application/problem+json` (RFC 9457), with the reason and code that frames carry. */
import { ERRORS, type ErrorReason } from "../../../../protocol/gen/errors.ts";
import type { ProblemDetails } from "../../../../protocol/gen/types.ts";
import type { GsvError } from "../../ports/result.ts";

/** What a program that speaks HTTP does next, where the contract's own hint is for the command line. */
const HTTP_HINTS: Partial<Record<ErrorReason, string>> = {
  "auth.required": "Send a token in the header `Authorization: Bearer TOKEN`. Make one: `gsv token create --scope client`.",
  "protocol.unsupported": "See what an address takes: `GET /openapi.json`.",
  "protocol.unknown_method": "See the addresses: `GET /openapi.json`.",
};
/** The contract's titles speak of frames and methods. */
const HTTP_TITLES: Partial<Record<ErrorReason, string>> = {
  "protocol.too_deep": "The body is nested too deeply.",
  "protocol.too_large": "The request is too large.",
  "protocol.unknown_method": "There is no such address.",
  "protocol.unsupported": "This address does not take this request.",
};

/** For requests of browsers to addresses that no page may use: there the setting `auth.allowedOrigins` changes nothing. */
export const NOT_FROM_A_PAGE = "Send the request from a program, not from a page.";

export function problem(reason: ErrorReason, detail?: string, hint?: string): ProblemDetails {
  const { code, http, retryable, text, hint: usual } = ERRORS[reason];
  return {
    type: "about:blank",
    title: HTTP_TITLES[reason] ?? text,
    status: http,
    code,
    reason,
    ...(detail === undefined || detail === text ? {} : { detail }),
    hint: (hint === undefined || hint === usual ? HTTP_HINTS[reason] : hint) ?? usual,
    ...(retryable ? { retryable: true } : {}),
  };
}

interface ProblemOptions {
  /** In the place of the contract's status, where HTTP has a more specific one. */
  readonly status?: number | undefined;
  readonly hint?: string | undefined;
  readonly title?: string;
}
export function problemResponse(reason: ErrorReason, detail?: string, { status, hint, title }: ProblemOptions = {}): Response {
  const body = {
    ...problem(reason, detail, hint),
    ...(status === undefined ? {} : { status }),
    ...(title === undefined ? {} : { title }),
  };
  return new Response(JSON.stringify(body), { status: body.status, headers: problemHeaders(reason) });
}

/** Another method than those of `allow`, such as `GET, POST`. */
export function methodRefused(allow: string, detail: string, hint?: string): Response {
  const response = problemResponse("protocol.unsupported", detail, { status: 405, hint, title: "This address does not take this method." });
  response.headers.set("Allow", allow);
  return response;
}

/** A failure as an HTTP answer. */
export const failureResponse = ({ reason, message, hint }: GsvError): Response => problemResponse(reason, message, { hint });

export function problemHeaders(reason: ErrorReason): Record<string, string> {
  return {
    "Content-Type": "application/problem+json",
    ...SAFE_HEADERS,
    ...(reason === "auth.required" ? { "WWW-Authenticate": 'Bearer realm="gsv"' } : {}),
    ...(reason === "limit.rate" || reason === "limit.jobs" || reason === "limit.sockets" ? { "Retry-After": "60" } : {}),
  };
}

/** For every answer: a browser must not guess its type, frame it or cache it. */
export const SAFE_HEADERS = {
  "X-Content-Type-Options": "nosniff",
  "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
  "Referrer-Policy": "no-referrer",
  "Cache-Control": "no-store",
} as const;
