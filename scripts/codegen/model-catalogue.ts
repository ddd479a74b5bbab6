/**
 * The catalogue of providers and models, from pi-ai's own: addresses, wire formats, context windows, limits, prices and the differences
 * between servers. Written as a few strings, because the gateway carries all of it and looks up one model at a time. Never uses the
 * network: pi-ai's package has its data beside it.
 */
import { builtinProviders } from "@mariozechner/pi-ai/providers/all";

export const CATALOGUE_FILE = "gateway/src/models/gen/catalogue.ts";
/** They need a subscription's login or speak a wire of their own (models/providers.ts says what to use instead). */
const LEFT_OUT = new Set(["openai-codex", "github-copilot", "radius"]);

/** Where the catalogue has a window that the provider's own service gives only to requests with a beta header, which GSV does not send. */
const WINDOWS: Readonly<Record<string, number>> = { "anthropic/claude-sonnet-4-5": 200_000 };

type Model = ReturnType<ReturnType<typeof builtinProviders>[number]["getModels"]>[number];

class Numbered {
  readonly list: string[] = [];
  readonly #at = new Map<string, number>();
  of(text: string): number {
    const known = this.#at.get(text);
    if (known !== undefined) return known;
    this.#at.set(text, this.list.length);
    return this.list.push(text) - 1;
  }
}
/** Of the model without a header; a dated id is its model's. */
const windowOf = (provider: string, { id, contextWindow }: Model): number =>
  WINDOWS[`${provider}/${id.replace(/-\d{8}$/, "")}`] ?? contextWindow;
/** Settings of other clients, which name models that our calls do not use. */
function compatOf({ compat }: Model): string {
  const entries = Object.entries(compat ?? {}).filter(([name]) => name !== "allowedFallbackModels");
  return JSON.stringify(Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1))));
}
/** All zero means that no price is known, except for models that call themselves free. A negative price means that it varies. */
function priceOf({ id, cost }: Model): string {
  const rates = [cost.input, cost.output, cost.cacheRead, cost.cacheWrite];
  if (rates.some((rate) => rate < 0) || (rates.every((rate) => rate === 0) && !/[:-]free$/.test(id))) return "-";
  const tiers = cost.tiers?.map((tier) => [tier.inputTokensAbove, tier.input, tier.output, tier.cacheRead, tier.cacheWrite].join(","));
  return [rates.join(","), ...(tiers ?? [])].join(";");
}

export function modelCatalogue(): string {
  const levels = new Numbered();
  const compats = new Numbered();
  const kinds = new Numbered();
  const providers = builtinProviders()
    .filter(({ id }) => !LEFT_OUT.has(id))
    .map(({ id, name, getModels }) => {
      const models = [...getModels()];
      const endpoints = new Numbered();
      // The address of most models comes first: models that are not listed use it.
      const counts = new Map<string, number>();
      const endpointOf = ({ api, baseUrl }: Model): string => `${api} ${baseUrl}`;
      for (const model of models) counts.set(endpointOf(model), (counts.get(endpointOf(model)) ?? 0) + 1);
      for (const [endpoint] of [...counts].sort(([, a], [, b]) => b - a)) endpoints.of(endpoint);
      const rows = models.map((model) => {
        if (/[\s|]/.test(model.id)) throw new Error(`a model id with a space: ${model.id}`);
        const kind = [
          endpoints.of(endpointOf(model)),
          model.input.includes("image") ? 1 : 0,
          model.reasoning ? 1 : 0,
          levels.of(JSON.stringify(model.thinkingLevelMap ?? {})),
          compats.of(compatOf(model)),
        ];
        return [model.id, windowOf(id, model), model.maxTokens, priceOf(model), kinds.of(kind.join(" ")).toString(36)].join(" ");
      });
      return `  ${JSON.stringify(id)}: [\n    ${JSON.stringify(name)},\n    ${JSON.stringify(endpoints.list)},\n    \`\n${rows.join("\n")}\n\`,\n  ],`;
    });
  const list = (name: string, doc: string, values: readonly string[]): string =>
    `/** ${doc} */\nexport const ${name}: readonly string[] = [\n${values.map((value) => `  ${JSON.stringify(value)},`).join("\n")}\n];\n`;
  return [
    "/** Generated from pi-ai's catalogue by scripts/codegen/model-catalogue.ts (npm run codegen). Do not edit. PURE: data. */\n",
    "/** Name, addresses (`wire baseUrl`), and a line for each model: id, context window, longest answer, price, kind. */",
    "export const CATALOGUE: Readonly<Record<string, readonly [name: string, endpoints: readonly string[], models: string]>> = {",
    ...providers,
    "};\n",
    list(
      "KINDS",
      "Address, images, thinking, levels, differences: each a number; the last two are positions in the lists below.",
      kinds.list,
    ),
    list("LEVELS", "Thinking levels as the provider calls them; null: not offered.", levels.list),
    list("COMPAT", "Differences between servers of the same wire.", compats.list),
  ].join("\n");
}
