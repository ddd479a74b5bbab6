/** Shared by the model tests: a complete request, and a clock that only the test moves. */
import type { ToolDefinition } from "../../../protocol/gen/types.ts";
import { CONFIG_DEFAULTS } from "../../../protocol/src/config.ts";
import type { Timers } from "../../src/models/watchdog.ts";
import type { UserMessage } from "../../src/ports/messages.ts";
import type { ModelRequest } from "../../src/ports/model.ts";
import type { EffectiveConfig } from "../../src/ports/run-context.ts";
import type { FakeModel } from "../../../test/fakes/fake-model.ts";
import type { Wire } from "../../../test/fakes/model-wire.ts";

export const KEY = "test-key-4711-do-not-show";
export const user = (text: string, timestamp = 1): UserMessage => ({ role: "user", content: text, timestamp });
export const tool = (name: string, more: Partial<ToolDefinition> = {}): ToolDefinition => ({
  name,
  description: `The tool ${name}.`,
  inputSchema: { type: "object", properties: { command: { type: "string" } } },
  ...more,
});

export function configWith(model: Record<string, unknown>, more: Record<string, unknown> = {}): EffectiveConfig {
  return { ...structuredClone(CONFIG_DEFAULTS), ...more, model: { provider: "demo", id: "demo", ...model } } as unknown as EffectiveConfig;
}

export interface Heard {
  readonly request: ModelRequest;
  readonly text: () => string;
  readonly abort: () => void;
  /** Resolves when text has arrived. */
  readonly firstText: Promise<void>;
}
export function request(more: Partial<ModelRequest> = {}): Heard {
  const controller = new AbortController();
  let heard = "";
  let first = (): void => {};
  const firstText = new Promise<void>((resolve) => {
    first = resolve;
  });
  return {
    text: () => heard,
    abort: () => controller.abort(),
    firstText,
    request: {
      model: { provider: "demo", id: "demo" },
      config: configWith({}),
      access: { apiKeys: {}, headers: {} },
      systemPrompt: "You are a test.",
      messages: [user("hello")],
      tools: [],
      thinkLevel: undefined,
      maxTokens: undefined,
      cacheKey: "cache-1",
      timeoutMs: 600_000,
      signal: controller.signal,
      now: () => Date.now(),
      onText(text) {
        heard += text;
        first();
      },
      ...more,
    },
  };
}
/** A request to the fake provider over the given wire. */
export function toFake(fake: FakeModel, wire: Wire, more: Partial<ModelRequest> = {}, model: Record<string, unknown> = {}): Heard {
  const provider = wire === "anthropic-messages" ? "anthropic" : "openai";
  const id = wire === "anthropic-messages" ? "claude-sonnet-4-5" : "gpt-4.1";
  return request({
    model: { provider, id },
    config: configWith({ provider, id, baseUrl: fake.url, ...model }),
    access: { apiKeys: { [provider]: KEY }, headers: {} },
    messages: [user("hello")],
    ...more,
  });
}

export interface ManualTime extends Timers {
  now(): number;
  /** Advances the clock and runs due timers. */
  advance(ms: number): void;
  readonly pending: number;
}
export function manualTime(start = 1_700_000_000_000): ManualTime {
  let at = start;
  let entries: { due: number; run: () => void }[] = [];
  return {
    now: () => at,
    get pending() {
      return entries.length;
    },
    set(run, ms) {
      const entry = { due: at + ms, run };
      entries.push(entry);
      return () => {
        entries = entries.filter((other) => other !== entry);
      };
    },
    advance(ms) {
      const until = at + ms;
      for (;;) {
        const next = entries.filter((entry) => entry.due <= until).sort((a, b) => a.due - b.due)[0];
        if (!next) break;
        entries = entries.filter((entry) => entry !== next);
        at = next.due;
        next.run();
      }
      at = until;
    },
  };
}
