/** The OpenAPI document of the HTTP contract. Only the code generator may import this module: the gateway serves the generated file. */
import { generateOpenApi } from "@ts-rest/open-api";
import { type HttpTypes, httpContract, type StandardSchema } from "./http.ts";

type JsonSchema = Readonly<Record<string, unknown>>;
const VERSION = "1";
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
        description: "Everything but /health needs `Authorization: Bearer <token>`. The WebSocket at /ws is described in METHODS.md.",
      },
      security: [{ bearer: [] }],
      components: { securitySchemes: { bearer: { type: "http", scheme: "bearer" } } },
    },
    {
      setOperationId: true,
      operationMapper: (operation, route) => {
        if (route.path === "/health") return { ...operation, security: [] };
        // ts-rest can't describe a body of plain bytes.
        if (route.method === "POST" && route.path === "/media") return { ...operation, requestBody: { required: true, content: BYTES } };
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
