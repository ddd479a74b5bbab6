/**
 * Tools and topics of packs with TypeBox schemas. Only for the parts of packs that are loaded on first use: TypeBox is large. It checks
 * without generated code, because the Workers runtime evaluates no text.
 */
import type { Static, TSchema } from "typebox";
import { Value } from "typebox/value";
import type { EventEnvelope } from "../../../protocol/gen/types.ts";
import type { Result } from "../ports/result.ts";
import type { PackContext, PackTool, PackTopic } from "./pack.ts";

const MAX_PROBLEMS = 4;

/** What does not fit, by path, never with the value. Undefined: it fits. */
export function schemaProblem(schema: TSchema, value: unknown): string | undefined {
  if (Value.Check(schema, value)) return undefined;
  const problems = [...Value.Errors(schema, value)].slice(0, MAX_PROBLEMS).map(({ instancePath, message }) => {
    const path = instancePath.slice(1).replaceAll("/", ".");
    return path === "" ? message : `${path}: ${message}`;
  });
  return `${problems.join("; ")}.`;
}

export type ToolOf<S extends TSchema> = Omit<PackTool, "inputSchema" | "idempotent" | "problem" | "run"> & {
  readonly input: S;
  readonly run: (args: Static<S>, context: PackContext, callId: string) => Promise<Result<unknown>>;
};
export const packTool = <S extends TSchema>({ input, ...tool }: ToolOf<S>): PackTool => ({
  ...tool,
  // Without TypeBox's own marks.
  inputSchema: JSON.parse(JSON.stringify(input)) as Record<string, unknown>,
  idempotent: true,
  problem: (args) => schemaProblem(input, args),
});

export type TopicOf<S extends TSchema> = Omit<PackTopic, "problem" | "text" | "handle"> & {
  readonly payload: S;
  readonly text: (payload: Static<S>) => string;
  readonly handle: (payload: Static<S>, context: PackContext, event: EventEnvelope) => Promise<Result<void>>;
};
export function packTopic<S extends TSchema>({ payload: schema, text, handle, ...topic }: TopicOf<S>): PackTopic {
  const fits = (payload: unknown): payload is Static<S> => Value.Check(schema, payload);
  return {
    ...topic,
    problem(payload) {
      const problem = schemaProblem(schema, payload);
      return problem === undefined ? undefined : `The payload does not fit: ${problem}`;
    },
    text: (payload) => (fits(payload) ? text(payload) : ""),
    async handle(event, context) {
      const { payload } = event;
      if (!fits(payload)) throw new Error(`a payload of ${topic.name} that does not fit was not refused`);
      return handle(payload, context, event);
    },
  };
}
