/** Settings that are stored and that nothing uses as they are: a warning, because the channel may be started later. PURE. */
import type { GsvConfig, ModelRef } from "../../../../protocol/gen/types.ts";
import { DEMO } from "../../models/resolve.ts";

/** Names and values from the configuration are shown cut. */
const SHOWN_CHARS = 64;
const shown = (text: string): string => `\`${text.slice(0, SHOWN_CHARS)}\``;

/** `eu-central-1`, `us-gov-west-1`, `ap-southeast-2`. */
const AWS_REGION = /^[a-z]{2,3}(?:-[a-z]+)+-\d{1,2}$/;
/** `europe-west4`, `us-central1`, and the places that are no region. */
const VERTEX_LOCATION = /^(?:global|us|eu|[a-z]+-[a-z]+\d{1,2})$/;

/** The warnings about the part of the configuration that a change of `path` has touched. `channels`: those that the gateway has. */
export function unusedSettings(path: string, config: Readonly<GsvConfig>, channels: readonly string[]): readonly string[] {
  const [top, name] = path.split(".");
  const touched = (all: object | undefined): readonly string[] =>
    Object.keys(all ?? {}).filter((key) => name === undefined || key === name);
  switch (top) {
    case "channels": {
      const known = channels.length === 0 ? "It has none yet" : `It has ${channels.toSorted().join(", ")}`;
      return touched(config.channels)
        .filter((channel) => !channels.includes(channel))
        .map(
          (channel) =>
            `This gateway has no channel ${shown(channel)}, so channels.${channel.slice(0, SHOWN_CHARS)} has no effect now. ${known}; \`gsv channel list\` shows more.`,
        );
    }
    case "cloud":
      return cloudWarnings(config.cloud, name);
    case "model":
      return modelWarnings(config.model, name);
    case "providers":
      return config.model?.provider === undefined || config.model.provider === DEMO
        ? touched(config.providers)
            .filter((provider) => !namesProvider(config, provider))
            .map(
              (provider) =>
                `The demo model answers, so providers.${provider.slice(0, SHOWN_CHARS)} has no effect until its model is chosen: \`gsv model use ${provider.slice(0, SHOWN_CHARS)}/MODEL\`.`,
            )
        : [];
    case "memory":
      return embeddingsWarnings(config.memory);
    case "telemetry":
      return telemetryWarnings(config.telemetry);
    default:
      return [];
  }
}

/** Settings of the model that decide whether it has a price. */
const OF_PRICE = new Set(["provider", "id", "price"]);
/**
 * The warning about limits in dollars that the owner has set, while the usual model has no price: its calls count as tokens (rule SP3).
 * `isPriced`: the model has a known price.
 */
export function unpricedLimits(path: string, { limits }: Readonly<GsvConfig>, model: ModelRef, isPriced: boolean): readonly string[] {
  const [top, name = ""] = path.split(".");
  const isTouched = top === "limits" || (top === "model" && (name === "" || OF_PRICE.has(name)));
  const inDollars = Object.keys(limits ?? {}).filter(
    (limit) => limit.endsWith("CostUsd") && (top !== "limits" || name === "" || name === limit),
  );
  const [first] = inDollars;
  if (isPriced || !isTouched || first === undefined) return [];
  const names = inDollars.map((limit) => `limits.${limit}`).join(", ");
  const tokens = `\`gsv config set limits.${first.replace("CostUsd", "Tokens")} 1000000\``;
  const price = '`gsv config set model.price \'{"input":1,"output":4}\'`';
  return [
    `${shown(`${model.provider}/${model.id}`)} has no known price, so ${names} ${inDollars.length === 1 ? "does" : "do"} not limit its calls. Limit its tokens: ${tokens}, or set its price in dollars for a million tokens: ${price}.`,
  ];
}

/** What is about the server of a model, which the demo model does not have. */
const OF_SERVER = ["baseUrl", "wire", "headers"] as const;
function modelWarnings({ provider = DEMO, ...model }: NonNullable<GsvConfig["model"]> = {}, name: string | undefined): readonly string[] {
  const unused = OF_SERVER.filter((setting) => model[setting] !== undefined);
  const isTouched = name === undefined || name === "provider" || unused.some((setting) => setting === name);
  if (provider !== DEMO || unused.length === 0 || !isTouched) return [];
  const paths = unused.map((setting) => `model.${setting}`).join(", ");
  return [`The demo model answers, so ${paths} ${unused.length === 1 ? "has" : "have"} no effect now. ${ofServer(model)}`];
}
/** How a server gets a name, with which its models can be chosen. An address with a quotation mark cannot be pasted. */
function ofServer({ baseUrl = "", wire = "openai-completions" }: NonNullable<GsvConfig["model"]>): string {
  if (baseUrl === "" || /['`]/.test(baseUrl)) return "Name the provider: `gsv config set model.provider NAME`.";
  const server = JSON.stringify({ baseUrl, wire });
  return `For a server of your own, give it a name: \`gsv config set providers.mine '${server}'\`, then choose its model: \`gsv model use mine/MODEL\`.`;
}
/** Whether a model beside the usual one is of this provider. */
const namesProvider = ({ model, agents, compaction }: Readonly<GsvConfig>, name: string): boolean =>
  [
    ...(model?.fallbacks ?? []),
    ...Object.values(model?.tiers ?? {}),
    ...(agents?.list ?? []).map((agent) => agent.model),
    compaction?.model,
  ].some((used) => used?.provider === name);

function embeddingsWarnings(memory: GsvConfig["memory"]): readonly string[] {
  const { provider = "built-in", ...others } = memory?.embeddings ?? {};
  const unused = Object.keys(others).map((name) => `memory.embeddings.${name}`);
  if (provider !== "built-in" || unused.length === 0) return [];
  return [
    `With the built-in table ${unused.join(", ")} ${unused.length === 1 ? "has" : "have"} no effect now. Choose a service with \`gsv config set memory.embeddings.provider openai\`.`,
  ];
}

function telemetryWarnings(telemetry: GsvConfig["telemetry"]): readonly string[] {
  const { endpoint, ...others } = telemetry?.otlp ?? {};
  const unused = Object.keys(others).map((name) => `telemetry.otlp.${name}`);
  if (endpoint !== undefined || unused.length === 0) return [];
  return [
    `Without telemetry.otlp.endpoint nothing is exported, so ${unused.join(" and ")} ${unused.length === 1 ? "has" : "have"} no effect now.`,
  ];
}

function cloudWarnings(cloud: GsvConfig["cloud"], name: string | undefined): readonly string[] {
  const odd = (setting: "awsRegion" | "vertexLocation", form: RegExp, what: string): readonly string[] => {
    const value = cloud?.[setting];
    if ((name !== undefined && name !== setting) || value === undefined || form.test(value)) return [];
    return [`${shown(value)} does not look like ${what}. Model calls fail when there is none of this name.`];
  };
  return [
    ...odd("awsRegion", AWS_REGION, "a region of AWS, such as eu-central-1"),
    ...odd("vertexLocation", VERTEX_LOCATION, "a location of Vertex AI, such as europe-west4 or global"),
  ];
}
