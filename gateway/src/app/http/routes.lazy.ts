/** Serves the JSON routes of the HTTP contract. Checks no caller: `worker.ts` does that first, for every route but /health. */
import { fetchRequestHandler, TsRestHttpError, TsRestResponse } from "@ts-rest/serverless/fetch";
import openApi from "../../../../protocol/gen/openapi.json" with { type: "json" };
import {
  checkAgentJob,
  checkAgentReport,
  checkHealthResult,
  checkHookTaken,
  checkJobListResult,
  checkJobTaken,
  checkJoinRequest,
  checkJoinResult,
  checkMediaUploaded,
  checkProblemDetails,
  checkRunRequest,
} from "../../../../protocol/gen/validators/checks.js";
import { type HttpTypes, httpContract, type SchemaOf, type StandardSchema, standardSchema } from "../../../../protocol/src/http.ts";
import { methodRefused, problem, problemHeaders, SAFE_HEADERS } from "./problem.ts";

/** No route that is served here reads a body: the table that explains what is wrong with one would be most of this part. */
const notValid = (): string => "The body is not valid.";
const SCHEMAS: { readonly [N in keyof HttpTypes]: StandardSchema<HttpTypes[N]> } = {
  AgentJob: standardSchema(checkAgentJob, notValid),
  AgentReport: standardSchema(checkAgentReport, notValid),
  HealthResult: standardSchema(checkHealthResult, notValid),
  HookTaken: standardSchema(checkHookTaken, notValid),
  JobListResult: standardSchema(checkJobListResult, notValid),
  JobTaken: standardSchema(checkJobTaken, notValid),
  JoinRequest: standardSchema(checkJoinRequest, notValid),
  JoinResult: standardSchema(checkJoinResult, notValid),
  MediaUploaded: standardSchema(checkMediaUploaded, notValid),
  ProblemDetails: standardSchema(checkProblemDetails, notValid),
  RunRequest: standardSchema(checkRunRequest, notValid),
};
const schemaOf: SchemaOf = (name) => SCHEMAS[name];
const contract = httpContract(schemaOf);
/** Without media, which `media.ts` serves as a stream, and /health, which every start waits for (health.ts). */
const served = { openapi: contract.openapi };

const setSafe = (headers: Headers): void => {
  for (const [name, value] of Object.entries(SAFE_HEADERS)) headers.set(name, value);
};

export async function route(request: Request, onError: (error: unknown) => void): Promise<Response> {
  if (request.method !== "GET" && new URL(request.url).pathname === contract.openapi.path)
    return methodRefused("GET", "Send a GET request.");
  const response: unknown = await fetchRequestHandler({
    request,
    contract: served,
    platformContext: {},
    router: {
      openapi: async (_args, { responseHeaders }) => {
        setSafe(responseHeaders);
        return { status: 200, body: openApi };
      },
    },
    options: {
      cors: false,
      errorHandler: (error) => {
        const reason =
          error instanceof TsRestHttpError && error.statusCode < 500
            ? error.statusCode === 404
              ? "protocol.unknown_method"
              : "protocol.invalid_params"
            : "internal";
        if (reason === "internal") onError(error);
        const body = problem(
          reason,
          reason === "protocol.unknown_method" ? "There is no such address. /openapi.json lists them." : undefined,
        );
        return new TsRestResponse(JSON.stringify(body), { status: body.status, headers: problemHeaders(reason) });
      },
    },
  });
  if (!(response instanceof Response)) throw new Error("the router gave no response");
  return response;
}
