/** Where traces are sent, and what is wrong with such a setting (rules OT2, OT3). PURE. */
import type { OtlpConfig } from "../../../protocol/gen/types.ts";

const PATH = "/v1/traces";
const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;
const HEADER_NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$/;
/** Set by the exporter or by the connection. */
const OWN_HEADERS: ReadonlySet<string> = new Set(["content-type", "content-length", "host", "connection", "transfer-encoding", "expect"]);
const EXAMPLE = "Set it to something like https://otel.example.com or http://127.0.0.1:4318.";

/** The address of the request; undefined: nothing is exported. */
export function tracesUrl(config: OtlpConfig | undefined): string | undefined {
  if (config?.endpoint === undefined || endpointProblem(config.endpoint) !== undefined) return undefined;
  return `${config.endpoint.replace(/\/+$/, "")}${PATH}`;
}
/** What is wrong with the settings, as a sentence. */
export function otlpProblem(config: OtlpConfig | undefined): string | undefined {
  const problem = config?.endpoint === undefined ? undefined : endpointProblem(config.endpoint);
  if (problem !== undefined) return problem;
  for (const [name, value] of Object.entries(config?.headers ?? {})) {
    const path = `telemetry.otlp.headers.${name.slice(0, 64)}`;
    if (!HEADER_NAME.test(name)) return `${path}: this is not a name of a header. Use letters, digits and \`-\`.`;
    if (OWN_HEADERS.has(name.toLowerCase())) return `${path}: GSV sets this header itself. Remove it.`;
    if (!/^[\t\x20-\x7e]*$/.test(value) || value.trim() === "")
      return `${path}: the value is empty or has a character that a header cannot have. Give the value itself.`;
  }
  return undefined;
}
function endpointProblem(endpoint: string): string | undefined {
  const at = "telemetry.otlp.endpoint";
  if (!URL.canParse(endpoint)) return `${at} is not an address. ${EXAMPLE}`;
  const { protocol, hostname, username, password, search, hash, pathname } = new URL(endpoint);
  if (username !== "" || password !== "" || search !== "" || hash !== "")
    return `${at} may have no name, password, query or fragment. Put a token into telemetry.otlp.headers.`;
  if (protocol !== "https:" && !(protocol === "http:" && LOOPBACK.test(hostname)))
    return `${at}: without https only an address of this machine is allowed, because traces and tokens would be readable on their way. ${EXAMPLE}`;
  if (pathname.replace(/\/+$/, "").endsWith(PATH)) return `${at} already ends with ${PATH}, which GSV adds. Leave it out.`;
  return undefined;
}
