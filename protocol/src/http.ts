/**
 * The HTTP contract (ts-rest). The schemas are arguments: servers and clients pass validators, the OpenAPI generator passes
 * JSON Schemas. This module must not import TypeBox.
 */
import { initContract } from "@ts-rest/core";
import type {
  AgentJob,
  AgentReport,
  HealthResult,
  HookTaken,
  JobListResult,
  JobTaken,
  JoinRequest,
  JoinResult,
  MediaUploaded,
  ProblemDetails,
  RunRequest,
} from "../gen/types.ts";

export interface HttpTypes {
  readonly AgentJob: AgentJob;
  readonly AgentReport: AgentReport;
  readonly HealthResult: HealthResult;
  readonly HookTaken: HookTaken;
  readonly JobListResult: JobListResult;
  readonly JobTaken: JobTaken;
  readonly JoinRequest: JoinRequest;
  readonly JoinResult: JoinResult;
  readonly MediaUploaded: MediaUploaded;
  readonly ProblemDetails: ProblemDetails;
  readonly RunRequest: RunRequest;
}
/** Standard Schema, version 1: the interface that ts-rest accepts from any schema library. */
export interface StandardSchema<T> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => { readonly value: T } | { readonly issues: readonly { readonly message: string }[] };
    readonly types?: { readonly input: T; readonly output: T };
  };
}
export type SchemaOf = <N extends keyof HttpTypes>(name: N) => StandardSchema<HttpTypes[N]>;

/** Wraps a validator as a Standard Schema. Its messages never contain values, because a refused body may hold a secret. */
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
        summary: "Reports that the gateway is up. Needs no token.",
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
          "Stores a file for a message of `sessionKey`. The body is the content of the file, Content-Type its type. `id` (a UUID) makes a retry safe. A machine's token may store only results of its own tool calls, named by `callId`.",
        query: c.type<{ sessionKey?: string; callId?: string; id?: string; filename?: string }>(),
        body: c.type<ReadableStream | Blob>(),
        responses: { 200: schemaOf("MediaUploaded"), 400: problem, 404: problem, 413: problem, 415: problem },
      },
      hook: {
        method: "POST",
        path: "/hooks/:name",
        summary:
          "Wakes the agent. The body is JSON. Needs no token of the gateway, but a signature or bearer token with the hook's own secret. 202: the delivery is stored and runs once; 200: nothing is left to do.",
        pathParams: c.type<{ name: string }>(),
        body: c.type<Record<string, unknown>>(),
        responses: { 200: schemaOf("HookTaken"), 202: schemaOf("HookTaken"), 400: problem, 405: problem, 408: problem, 413: problem },
      },
      join: {
        method: "POST",
        path: "/join",
        summary:
          "Exchanges the secret of an invitation for a token. Needs no token. A repeated request with the same nonce gets the same token.",
        body: schemaOf("JoinRequest"),
        responses: {
          200: schemaOf("JoinResult"),
          400: problem,
          403: problem,
          405: problem,
          408: problem,
          409: problem,
          410: problem,
          413: problem,
        },
      },
      run: {
        method: "POST",
        path: "/run",
        summary:
          "Gives an agent a task and answers with the report when its run has ended, or when it waits for the owner's word. The header `Idempotency-Key` makes a retry safe for 7 days: it answers with the report of the first request.",
        headers: c.type<{ "idempotency-key"?: string }>(),
        body: schemaOf("RunRequest"),
        responses: { 200: schemaOf("AgentReport"), 400: problem, 404: problem, 408: problem, 409: problem, 413: problem },
      },
      submitJob: {
        method: "POST",
        path: "/jobs",
        summary:
          "Stores a job for an agent and answers with its id. It runs when it is its turn. The header `Idempotency-Key` makes a retry safe for 24 hours: it answers with the job of the first request.",
        headers: c.type<{ "idempotency-key"?: string }>(),
        body: schemaOf("RunRequest"),
        responses: { 202: schemaOf("JobTaken"), 400: problem, 404: problem, 408: problem, 409: problem, 413: problem, 422: problem },
      },
      jobs: {
        method: "GET",
        path: "/jobs",
        summary: "Lists jobs, the newest first, from an index that may be a minute behind. `cursor` of the answer asks for the next page.",
        query: c.type<{ status?: string; agent?: string; limit?: string; cursor?: string }>(),
        responses: { 200: schemaOf("JobListResult"), 400: problem },
      },
      job: {
        method: "GET",
        path: "/jobs/:id",
        summary: "Returns a job, with its report when it has ended or waits for the owner's word.",
        pathParams: c.type<{ id: string }>(),
        responses: { 200: schemaOf("AgentJob"), 404: problem },
      },
      cancelJob: {
        method: "DELETE",
        path: "/jobs/:id",
        summary: "Cancels a job. A queued one never begins, a running one ends at its next step border at the latest.",
        pathParams: c.type<{ id: string }>(),
        responses: { 200: schemaOf("AgentJob"), 404: problem },
      },
      media: {
        method: "GET",
        path: "/media/:key",
        summary: "Returns a stored media file. The key is `r2Key` without `media/`, percent-encoded.",
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
