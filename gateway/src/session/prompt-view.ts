/**
 * Shows the prompt of the next model call (`session.prompt`): the system prompt by section, the tools, and their share of the window.
 * Calls no model and writes nothing.
 */
import { asAgentId, asSessionKey, type SessionPromptResult } from "../../../protocol/gen/types.ts";
import { utf8Bytes } from "../../../protocol/runtime/utf8.ts";
import { tokensOfMessages, tokensOfText, tokensOfTool } from "../models/estimate.ts";
import { modelLimits, resolveModelId } from "../models/resolve.ts";
import type { Message } from "../ports/messages.ts";
import type { NativeTools } from "../ports/native-tools.ts";
import type { PromptSource } from "../ports/prompt.ts";
import type { Result } from "../ports/result.ts";
import type { RunContext } from "../ports/run-context.ts";
import type { SessionIdentity } from "../ports/session.ts";
import type { State } from "./machine/state.ts";
import { modelsFor } from "./run-settings.ts";
import { runTools } from "./tools.ts";

export interface PromptViewInput {
  /** The existing session's identity, else that of the session that its first message would begin. */
  readonly identity: SessionIdentity;
  /** Undefined before the first message. */
  readonly state: State | undefined;
  readonly messages: readonly Message[];
  readonly context: RunContext;
  readonly prompts: PromptSource;
  readonly native: Pick<NativeTools, "entries">;
  readonly now: number;
  readonly sha256: (text: string) => Promise<string>;
}

export async function promptView(input: PromptViewInput): Promise<Result<SessionPromptResult>> {
  const { identity, state, context } = input;
  const settings = state?.settings ?? {};
  const [chosen] = modelsFor({ directives: {} }, settings, context);
  if (chosen === undefined) throw new Error("no model to ask");
  const offered = runTools(identity, input.native, context).definitions;
  const assembled = await input.prompts.assemble({
    identity,
    config: context.config,
    agent: context.agent,
    defined: context.defined,
    nodes: context.nodes,
    skillPins: context.skillPins,
    tools: offered,
    model: chosen,
    systemPromptOverride: settings.systemPrompt,
    now: input.now,
  });
  if (!assembled.ok) return assembled;
  const { system, sections } = assembled.value;
  const tools = offered.map((tool) => ({ name: tool.name, tokens: tokensOfTool(tool) }));
  const systemTokens = tokensOfText(system);
  const toolTokens = tools.reduce((sum, { tokens }) => sum + tokens, 0);
  const messageTokens = tokensOfMessages(input.messages);
  return {
    ok: true,
    value: {
      sessionKey: asSessionKey(identity.key),
      agentId: asAgentId(identity.agentId),
      model: { provider: chosen.provider, id: resolveModelId(chosen) },
      sections: sections.map(({ id, title, layer, text }) => ({
        id,
        title,
        layer,
        text,
        sizeBytes: utf8Bytes(text),
        tokens: tokensOfText(text),
      })),
      tools,
      systemTokens,
      toolTokens,
      messageCount: input.messages.length,
      messageTokens,
      totalTokens: systemTokens + toolTokens + messageTokens,
      contextWindow: modelLimits(chosen, context.config).contextWindow,
      sha256: await input.sha256(system),
    },
  };
}
