/** Says what is wrong with a chosen provider or model: the demo, built-in providers, and servers of one's own. PURE. */
import type { GsvConfig, ModelRef } from "../../../protocol/gen/types.ts";
import { nearest } from "../../../protocol/runtime/nearest.ts";
import { adviceFor, knownProviders, providerInfo } from "./catalog.ts";
import type { Problem } from "../ports/result.ts";
import { DEMO } from "./resolve.ts";

type Servers = Pick<GsvConfig, "model" | "providers">;
const SHOWN_CHARS = 64;
const LIST = "List the providers: `gsv provider list`.";

/** What is wrong with a model that is chosen; undefined: it can be used. Any id of a real provider may be its newest model. */
export function modelProblem({ provider, id }: ModelRef, servers: Servers): Problem | undefined {
  if (provider !== DEMO || id === DEMO) return providerProblem(provider, servers);
  return {
    message: `The provider ${DEMO} has no model ${JSON.stringify(id.slice(0, SHOWN_CHARS))}.`,
    hint: `Its only model is \`${DEMO}/${DEMO}\`.`,
  };
}

/** What is wrong with a provider's name; undefined: it can be used. */
export function providerProblem(name: string, { model, providers = {} }: Servers): Problem | undefined {
  if (name === DEMO || providerInfo(name) !== undefined || Object.hasOwn(providers, name)) return undefined;
  // A server of one's own may have any name.
  if (model?.baseUrl !== undefined && model.provider === name) return undefined;
  const shown = JSON.stringify(name.slice(0, SHOWN_CHARS));
  const advice = adviceFor(name);
  if (advice !== undefined) return { message: `The provider ${shown} is not built in. ${advice.message}`, hint: advice.hint };
  const meant = nearest(name, [DEMO, ...knownProviders(), ...Object.keys(providers)]);
  if (meant !== undefined) return { message: `There is no provider ${shown}. Did you mean ${meant}?`, hint: LIST };
  return {
    message: `There is no provider ${shown}. Built in are ${knownProviders().join(", ")}.`,
    hint: `${LIST} For your own server, first set \`model.baseUrl\`, or \`providers.NAME\`.`,
  };
}
