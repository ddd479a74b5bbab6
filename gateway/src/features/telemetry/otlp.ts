/**
 * Writes spans as the JSON of the OpenTelemetry protocol (OTLP 1.9, "JSON Protobuf Encoding"): ids in hex, times and 64-bit integers as
 * texts, enumerations as numbers. PURE.
 */
export type Attributes = Readonly<Record<string, string | number | boolean | undefined>>;
export const KIND = { internal: 1, client: 3 } as const;
const STATUS_ERROR = 2;

export interface SpanEvent {
  readonly name: string;
  readonly at: number;
  readonly attributes: Attributes;
}
export interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: (typeof KIND)[keyof typeof KIND];
  /** Epoch ms. */
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Attributes;
  readonly events?: readonly SpanEvent[];
  /** The span's operation failed. `message` may be empty. */
  readonly failed?: { readonly message: string };
}

const anyValue = (value: string | number | boolean) => {
  if (typeof value === "string") return { stringValue: value };
  if (typeof value === "boolean") return { boolValue: value };
  return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value };
};
const attributesOf = (attributes: Attributes) =>
  Object.entries(attributes).flatMap(([key, value]) => (value === undefined ? [] : [{ key, value: anyValue(value) }]));
const nanos = (ms: number): string => `${Math.max(0, Math.round(ms))}000000`;

/** The body of one request. */
export function requestOf(spans: readonly Span[], resource: Attributes, scope: string): string {
  return JSON.stringify({
    resourceSpans: [
      {
        resource: { attributes: attributesOf(resource) },
        scopeSpans: [{ scope: { name: scope }, spans: spans.map(spanOf) }],
      },
    ],
  });
}
const spanOf = ({ traceId, spanId, parentSpanId, name, kind, startMs, endMs, attributes, events = [], failed }: Span) => ({
  traceId,
  spanId,
  ...(parentSpanId === undefined ? {} : { parentSpanId }),
  name,
  kind,
  startTimeUnixNano: nanos(startMs),
  endTimeUnixNano: nanos(Math.max(startMs, endMs)),
  attributes: attributesOf(attributes),
  events: events.map((event) => ({ name: event.name, timeUnixNano: nanos(event.at), attributes: attributesOf(event.attributes) })),
  status: failed === undefined ? {} : { code: STATUS_ERROR, ...(failed.message === "" ? {} : { message: failed.message }) },
});
