/**
 * A collector's view of a request: the JSON form of `ExportTraceServiceRequest` (OTLP 1.9). Throws where a field is unknown or has another
 * form than the protocol says.
 */
export type AttributeValue = string | number | boolean;
export interface SeenSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly name: string;
  readonly kind: number;
  readonly startMs: number;
  readonly endMs: number;
  readonly status: number;
  readonly attributes: Readonly<Record<string, AttributeValue>>;
  readonly events: readonly string[];
}
type Json = Readonly<Record<string, unknown>>;
const bad = (what: string, value: unknown): never => {
  throw new Error(`${what}: ${JSON.stringify(value)?.slice(0, 200)}`);
};
/** An object with no other fields than these. */
function object(value: unknown, what: string, fields: readonly string[]): Json {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return bad(`${what} is not an object`, value);
  for (const name of Object.keys(value)) if (!fields.includes(name)) bad(`${what} has an unknown field`, name);
  return value as Json;
}
const list = (value: unknown, what: string): readonly unknown[] => (Array.isArray(value) ? value : bad(`${what} is not a list`, value));
const matching = (value: unknown, what: string, form: RegExp): string =>
  typeof value === "string" && form.test(value) ? value : bad(`${what} has another form`, value);

function attributesOf(value: unknown, what: string): Record<string, AttributeValue> {
  const seen: Record<string, AttributeValue> = {};
  for (const item of list(value ?? [], what)) {
    const { key, value: held } = object(item, what, ["key", "value"]);
    const name = matching(key, `${what}: key`, /^[a-z][a-z0-9_.]*$/);
    if (name in seen) bad(`${what} has a key twice`, name);
    const kinds = object(held, name, ["stringValue", "boolValue", "intValue", "doubleValue"]);
    const [[kind, inner] = []] = Object.entries(kinds);
    if (Object.keys(kinds).length !== 1) bad(`${name} must have one value`, kinds);
    if (kind === "stringValue" && typeof inner === "string") seen[name] = inner;
    else if (kind === "boolValue" && typeof inner === "boolean") seen[name] = inner;
    else if (kind === "doubleValue" && typeof inner === "number") seen[name] = inner;
    else seen[name] = Number(matching(inner, `${name}: 64-bit integer`, /^-?\d+$/));
  }
  return seen;
}
const millis = (value: unknown, what: string): number => Number(BigInt(matching(value, what, /^[1-9]\d{0,19}$/)) / 1_000_000n);

function spanOf(value: unknown): SeenSpan {
  const fields = [
    "traceId",
    "spanId",
    "parentSpanId",
    "name",
    "kind",
    "startTimeUnixNano",
    "endTimeUnixNano",
    "attributes",
    "events",
    "status",
  ];
  const span = object(value, "span", fields);
  const status = object(span["status"], "status", ["code", "message"]);
  const { code = 0, message } = status;
  if (code !== 0 && code !== 1 && code !== 2) bad("status.code is no known number", code);
  if (message !== undefined && typeof message !== "string") bad("status.message is not a text", message);
  const { kind } = span;
  if (typeof kind !== "number" || ![1, 2, 3, 4, 5].includes(kind)) return bad("kind is no known number", kind);
  const [startMs, endMs] = [millis(span["startTimeUnixNano"], "start"), millis(span["endTimeUnixNano"], "end")];
  if (endMs < startMs) bad("a span ends before it begins", span["name"]);
  const parent = span["parentSpanId"];
  return {
    traceId: matching(span["traceId"], "traceId", /^(?!0+$)[0-9a-f]{32}$/),
    spanId: matching(span["spanId"], "spanId", /^(?!0+$)[0-9a-f]{16}$/),
    parentSpanId: parent === undefined ? undefined : matching(parent, "parentSpanId", /^(?!0+$)[0-9a-f]{16}$/),
    name: matching(span["name"], "name", /./),
    kind,
    startMs,
    endMs,
    status: Number(code),
    attributes: attributesOf(span["attributes"], "attributes"),
    events: list(span["events"] ?? [], "events").map((item) => {
      const event = object(item, "event", ["name", "timeUnixNano", "attributes"]);
      millis(event["timeUnixNano"], "event.timeUnixNano");
      attributesOf(event["attributes"], "event.attributes");
      return matching(event["name"], "event.name", /./);
    }),
  };
}
/** The spans of one request. */
export function seenSpans(body: string): readonly SeenSpan[] {
  const request = object(JSON.parse(body), "request", ["resourceSpans"]);
  return list(request["resourceSpans"], "resourceSpans").flatMap((item) => {
    const { resource, scopeSpans } = object(item, "resourceSpans", ["resource", "scopeSpans"]);
    const about = attributesOf(object(resource, "resource", ["attributes"])["attributes"], "resource");
    if (about["service.name"] !== "gsv") bad("resource has no service.name", about);
    return list(scopeSpans, "scopeSpans").flatMap((inner) => {
      const { scope, spans } = object(inner, "scopeSpans", ["scope", "spans"]);
      matching(object(scope, "scope", ["name", "version"])["name"], "scope.name", /./);
      return list(spans, "spans").map(spanOf);
    });
  });
}
