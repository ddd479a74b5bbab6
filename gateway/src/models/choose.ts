/** Which model a person means by a name or by half of one (product P3.3). PURE: asks the catalog, never the configuration. */
import type { ModelPatch, ModelRef } from "../../../protocol/gen/types.ts";
import { hasModel, providerInfo, providersOf } from "./catalog.ts";
import { isDemo, resolveModelId } from "./resolve.ts";

export type Meant = { readonly ok: true; readonly model: ModelRef } | { readonly ok: false; readonly message: string };

/** The id may contain slashes itself (`openrouter/meta/llama`). */
export function parseModel(text: string): ModelRef | undefined {
  const match = /^([A-Za-z0-9_.-]{1,64})\/(\S{1,256})$/.exec(text);
  return match?.[1] !== undefined && match[2] !== undefined ? { provider: match[1], id: match[2] } : undefined;
}

/**
 * `provider/id`, or an id alone: then the current provider if it has that model, else the only one that has it. A server of one's own
 * may have any model. `current` absent: the current model is not known.
 */
export function modelNamed(text: string, current: ModelRef | undefined): Meant {
  const whole = parseModel(text);
  if (whole !== undefined) return { ok: true, model: whole };
  const example = "Name it as provider/id, for example `/model anthropic/claude-sonnet-5`.";
  if (!/^[^\s/]{1,256}$/.test(text)) return { ok: false, message: example };
  const shown = text.slice(0, 64);
  if (current !== undefined && hasModel(current.provider, text)) return { ok: true, model: { provider: current.provider, id: text } };
  const [first, ...others] = providersOf(text);
  if (first !== undefined && others.length > 0)
    return { ok: false, message: `${[first, ...others].join(", ")} have a model ${shown}. Say which: \`/model ${first}/${shown}\`.` };
  if (first !== undefined) return { ok: true, model: { provider: first, id: text } };
  if (
    current !== undefined &&
    (providerInfo(current.provider)?.keyless === true || providerInfo(current.provider) === undefined) &&
    !isDemo(current)
  )
    return { ok: true, model: { provider: current.provider, id: text } };
  return { ok: false, message: `No known provider has a model ${shown}. ${example}` };
}

/**
 * The model after a change of one or both halves. An id alone keeps the provider. A provider alone keeps the id where it has that
 * model, else it gets its usual one. Undefined: the other half is not known.
 */
export function patchedModel({ provider, id }: ModelPatch, current: ModelRef | undefined): ModelRef | undefined {
  if (provider !== undefined && id !== undefined) return { provider, id };
  if (current === undefined) return undefined;
  if (id !== undefined) return { provider: current.provider, id };
  if (provider === undefined || provider === current.provider) return current;
  const kept = resolveModelId(current);
  if (hasModel(provider, kept)) return { provider, id: kept };
  return { provider, id: isDemo({ provider, id: kept }) ? provider : (providerInfo(provider)?.defaultModel ?? kept) };
}
