/**
 * The addresses to which the settings send a secret, so that a change by others can't send it to another one (rule MV3). An address that no
 * model uses now counts too: a later choice of a model would use it. Sends nothing. PURE.
 */
import type { GsvConfig } from "../../../../protocol/gen/types.ts";
import { OPENAI_URL } from "../../embeddings/choose.ts";
import { builtInAddresses } from "../../models/catalog.ts";
import { cloudAddress } from "../../models/cloud.ts";
import { getAt } from "./tree.ts";

/** As texts to compare. Undefined: where the secret at this path is sent is not known. */
export function receiversOf(path: readonly string[], config: Readonly<GsvConfig>): readonly string[] | undefined {
  const [top = "", ...below] = path;
  switch (top) {
    case "apiKeys": {
      const [provider = ""] = below;
      return [...serversOf(provider, config), ...(provider === "openai" ? openAiServices(config) : [])];
    }
    case "model":
      return config.model?.provider === undefined ? [] : serversOf(config.model.provider, config);
    case "telemetry":
      return given(config.telemetry?.otlp?.endpoint);
    case "packs": {
      // Only the pack knows which of its settings is an address.
      const settings = getAt(config.packs?.settings, [below[1] ?? ""]) ?? {};
      return Object.entries(settings).map((setting) => JSON.stringify(setting));
    }
    default:
      return undefined;
  }
}
/** Whether the secret at this path goes to no address to which it did not go before. */
export function hasSameReceivers(path: readonly string[], before: Readonly<GsvConfig>, next: Readonly<GsvConfig>): boolean {
  const was = receiversOf(path, before);
  return was !== undefined && receiversOf(path, next)?.every((address) => was.includes(address)) === true;
}

const given = (address: string | undefined): readonly string[] => (address === undefined ? [] : [address]);

/** Servers of models. An address of the owner's stands in for the one that is built in. */
function serversOf(provider: string, config: Readonly<GsvConfig>): readonly string[] {
  const { model, cloud } = config;
  const named = getAt(config.providers, [provider, "baseUrl"]);
  const own = [model?.provider === provider ? model.baseUrl : undefined, named].filter((address) => typeof address === "string");
  if (own.length > 0) return own;
  const key = getAt(config.apiKeys, [provider]);
  return builtInAddresses(provider).flatMap((template) => {
    const address = cloudAddress(provider, provider, template, cloud, typeof key === "string" ? key : undefined);
    return address.ok ? [address.value] : [];
  });
}
/** Speech and embeddings use the key of OpenAI. */
function openAiServices({ transcription, memory }: Readonly<GsvConfig>): readonly string[] {
  const { provider, baseUrl } = memory?.embeddings ?? {};
  return [transcription?.baseUrl ?? OPENAI_URL, ...(provider === "openai" ? [baseUrl ?? OPENAI_URL] : given(baseUrl))];
}
