/** The OpenAPI document of the HTTP contract. Only the code generator may import this module: the gateway serves the generated file. */
import { generateOpenApi } from "@ts-rest/open-api";
import { type HttpTypes, httpContract, type StandardSchema } from "./http.ts";

type JsonSchema = Readonly<Record<string, unknown>>;
const VERSION = "1";
/** ts-rest describes headers and queries by schemas, which the contract has none of. */
const parameter = (place: "header" | "query", name: string, description: string) => ({
  in: place,
  name,
  description,
  schema: { type: "string" as const },
});
const signature = (name: string, description: string) => ({ type: "apiKey" as const, in: "header" as const, name, description });
/** A hook has its own secret and one of these forms (`gsv hook add --form`). */
const HOOK_SECURITY = {
  hookStandard: signature("webhook-signature", "Form `standard`: Standard Webhooks, also for hooks of the form `bearer`."),
  hookGithub: signature("X-Hub-Signature-256", "Form `github`: HMAC-SHA256 of the body."),
  hookStripe: signature("Stripe-Signature", "Form `stripe`: HMAC-SHA256 of time and body."),
  hookBearer: { type: "http" as const, scheme: "bearer", description: "Form `bearer`: the hook's own secret, not a token of the gateway." },
};
const HOOK_HEADERS = [
  parameter("header", "webhook-id", "Form `standard`: names the delivery, which is accepted once."),
  parameter("header", "webhook-timestamp", "Form `standard`: seconds; may differ from the gateway's clock by 5 minutes."),
  parameter("header", "X-GitHub-Delivery", "Form `github`: names the delivery."),
  parameter("header", "Idempotency-Key", "Form `bearer`: names the delivery."),
];
const UPLOAD_QUERY = [
  parameter("query", "sessionKey", "The conversation that the file is for."),
  parameter("query", "callId", "Instead of it: the call of a machine whose result the file is."),
  parameter("query", "id", "A UUID. The same one again stores the file once."),
  parameter("query", "filename", "The name of the file."),
];
const TASK_KEY = parameter(
  "header",
  "Idempotency-Key",
  "1 to 255 visible ASCII characters. The same request with the same key and token is one task for 7 days, and is answered with its report. Absent: each request is a new task.",
);
const JOB_KEY = parameter(
  "header",
  "Idempotency-Key",
  "1 to 255 visible ASCII characters. The same request with the same key and token is one job for 24 hours. Absent: each request is a new job.",
);
const JOBS_QUERY = [
  parameter("query", "status", "Only jobs that stand so."),
  parameter("query", "agent", "Only jobs of the agent with this name or id."),
  parameter("query", "limit", "Jobs of a page, 1 to 200; 50 when it is absent."),
  parameter("query", "cursor", "The `cursor` of the page before."),
];
const BYTES = { "*/*": { schema: { type: "string", format: "binary" } } } as const;

/** `schemas`: JSON Schema by type name, for every name in HttpTypes. */
export function openApiDocument(schemas: (name: keyof HttpTypes) => JsonSchema): unknown {
  const names = new Map<unknown, keyof HttpTypes>();
  const named = <N extends keyof HttpTypes>(name: N): StandardSchema<HttpTypes[N]> => {
    const schema: StandardSchema<HttpTypes[N]> = {
      "~standard": { version: 1, vendor: "gsv", validate: () => ({ issues: [{ message: "only described here" }] }) },
    };
    names.set(schema, name);
    return schema;
  };
  const document = generateOpenApi(
    httpContract(named),
    {
      info: {
        title: "GSV gateway",
        version: VERSION,
        description:
          "Everything but /health, /join and /hooks needs `Authorization: Bearer <token>`. A hook needs a proof of its own secret. The WebSocket at /ws is described in METHODS.md.",
      },
      security: [{ bearer: [] }],
      components: { securitySchemes: { bearer: { type: "http", scheme: "bearer" }, ...HOOK_SECURITY } },
    },
    {
      setOperationId: true,
      operationMapper: (operation, route) => {
        const { parameters = [] } = operation;
        if (route.path === "/health" || route.path === "/join") return { ...operation, security: [] };
        // ts-rest can't describe a body of plain bytes.
        if (route.method === "POST" && route.path === "/media")
          return { ...operation, parameters: UPLOAD_QUERY, requestBody: { required: true, content: BYTES } };
        // The only header that routes take.
        if (route.headers !== undefined) return { ...operation, parameters: [...parameters, route.path === "/jobs" ? JOB_KEY : TASK_KEY] };
        if (route.method === "GET" && route.path === "/jobs") return { ...operation, parameters: JOBS_QUERY };
        if (route.path.startsWith("/hooks/")) {
          const security = Object.keys(HOOK_SECURITY).map((name) => ({ [name]: [] }));
          return { ...operation, security, parameters: [...parameters, ...HOOK_HEADERS] };
        }
        return operation;
      },
      // A schema with a `title` becomes a component.
      schemaTransformer: ({ schema }) => {
        const name = names.get(schema);
        return name === undefined ? null : { title: name, ...schemas(name) };
      },
    },
  );
  // The schemas are JSON Schema 2020-12, which OpenAPI 3.1 uses.
  return { ...document, openapi: "3.1.0" };
}
