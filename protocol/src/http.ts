/**
 * The HTTP contract (ts-rest). The schemas are those of the vocabulary, given in from outside: whoever serves or calls the
 * routes hands in validators, whoever writes the OpenAPI document hands in JSON Schemas. So nothing here needs TypeBox.
 */
import { initContract } from "@ts-rest/core";
import type { HealthResult, MediaUploaded, ProblemDetails } from "../gen/types.ts";

export interface HttpTypes {
  readonly HealthResult: HealthResult;
  readonly MediaUploaded: MediaUploaded;
  readonly ProblemDetails: ProblemDetails;
}
/** Standard Schema, version 1: what ts-rest understands of any schema library. */
export interface StandardSchema<T> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => { readonly value: T } | { readonly issues: readonly { readonly message: string }[] };
    readonly types?: { readonly input: T; readonly output: T };
  };
}
export type SchemaOf = <N extends keyof HttpTypes>(name: N) => StandardSchema<HttpTypes[N]>;

/** A Standard Schema around a validator. What it says is never a value: a refused body may hold a secret. */
export function standardSchema<T>(check: (value: unknown) => value is T, explain: (value: unknown) => string): StandardSchema<T> {
  return {
    "~standard": {
      version: 1,
      vendor: "gsv",
      validate: (value) => (check(value) ? { value } : { issues: [{ message: explain(value) }] }),
    },
  };
}

export function httpContract(schemaOf: SchemaOf) {
  const c = initContract();
  const problem = c.otherResponse({ contentType: "application/problem+json", body: schemaOf("ProblemDetails") });
  return c.router(
    {
      health: {
        method: "GET",
        path: "/health",
        summary: "Whether the gateway is up. Needs no token.",
        responses: { 200: schemaOf("HealthResult") },
      },
      openapi: {
        method: "GET",
        path: "/openapi.json",
        summary: "This document.",
        responses: { 200: c.type<Record<string, unknown>>() },
      },
      upload: {
        method: "POST",
        path: "/media",
        summary:
          "Stores a file for a message of `sessionKey`. The body is the file as it is, Content-Type says what it is. `id` (a UUID) makes it safe to send again. A machine's token stores what a tool call of its own gives, named by `callId`.",
        query: c.type<{ sessionKey?: string; callId?: string; id?: string; filename?: string }>(),
        body: c.type<ReadableStream | Blob>(),
        responses: { 200: schemaOf("MediaUploaded"), 400: problem, 404: problem, 413: problem, 415: problem },
      },
      media: {
        method: "GET",
        path: "/media/:key",
        summary: "A stored media file. The key is what `r2Key` says, without `media/`, percent-encoded.",
        pathParams: c.type<{ key: string }>(),
        responses: {
          200: c.otherResponse({ contentType: "application/octet-stream", body: c.type<ReadableStream | Blob>() }),
          404: problem,
        },
      },
    },
    { commonResponses: { 401: problem, 403: problem, 429: problem, 500: problem, 503: problem }, strictStatusCodes: true },
  );
}
export type HttpContract = ReturnType<typeof httpContract>;
