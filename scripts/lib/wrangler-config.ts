/** Reads `wrangler.jsonc`, the only source of what the embedded gateway and a deployment need to know of a Worker. PURE: takes texts. */

export interface Compatibility {
  readonly compatibilityDate: string;
  readonly compatibilityFlags: readonly string[];
}
export interface ChannelFacts extends Compatibility {
  /** Class of the accounts' Durable Object. */
  readonly durableObject: string;
}
/** Flags that a compatibility date turns on by itself. */
const DEFAULT_SINCE: Readonly<Record<string, string>> = { nodejs_compat: "2026-08-04" };

export class ConfigProblem extends Error {}

/** Removes comments and trailing commas. Strings keep their content. */
export const withoutComments = (text: string): string =>
  text
    .replaceAll(/("(?:[^"\\]|\\.)*")|\/\/[^\n]*|\/\*[\s\S]*?\*\//g, (_, string: string | undefined) => string ?? "")
    .replaceAll(/("(?:[^"\\]|\\.)*")|,(\s*[}\]])/g, (_, string: string | undefined, end: string | undefined) => string ?? end ?? "");

interface Config {
  readonly name?: string;
  readonly compatibility_date?: string;
  readonly compatibility_flags?: readonly string[];
  readonly workers_dev?: boolean;
  readonly routes?: unknown;
  readonly durable_objects?: { readonly bindings?: readonly { readonly name?: string; readonly class_name?: string }[] };
  readonly services?: readonly {
    readonly binding?: string;
    readonly service?: string;
    readonly entrypoint?: string;
    readonly props?: { readonly channel?: string };
  }[];
  readonly queues?: {
    readonly producers?: readonly { readonly binding: string; readonly queue: string }[];
    readonly consumers?: readonly {
      readonly queue: string;
      readonly max_batch_size: number;
      readonly max_batch_timeout: number;
      readonly max_retries: number;
      readonly dead_letter_queue?: string;
    }[];
  };
  readonly r2_buckets?: readonly { readonly binding?: string; readonly bucket_name?: string }[];
}

export function compatibility(text: string, file: string): Compatibility {
  const { compatibility_date: date, compatibility_flags: flags = [] } = parse(text, file);
  if (date === undefined) throw new ConfigProblem(`${file} has no compatibility_date.`);
  // wrangler requires the flag in every case; workerd warns at each start that it is not needed.
  return { compatibilityDate: date, compatibilityFlags: flags.filter((flag) => (DEFAULT_SINCE[flag] ?? "9999-12-31") > date) };
}

/** A queue of which the Worker is the consumer, with the binding by which it sends to it. */
export interface QueueFacts {
  readonly name: string;
  readonly binding?: string;
  readonly maxBatchSize: number;
  readonly maxBatchTimeout: number;
  readonly maxRetries: number;
  readonly deadLetterQueue?: string;
}
/** Throws ConfigProblem when a queue has no consumer, or one has dead letters that no one takes. */
export function queueFacts(text: string, file: string): readonly QueueFacts[] {
  const { producers = [], consumers = [] } = parse(text, file).queues ?? {};
  const names = new Set(consumers.map(({ queue }) => queue));
  const lost = [...producers.map(({ queue }) => queue), ...consumers.flatMap(({ dead_letter_queue: dead }) => dead ?? [])].find(
    (name) => !names.has(name),
  );
  if (lost !== undefined) throw new ConfigProblem(`${file}: the queue ${lost} has no consumer.`);
  return consumers.map((consumer) => {
    const binding = producers.find(({ queue }) => queue === consumer.queue)?.binding;
    const dead = consumer.dead_letter_queue;
    return {
      name: consumer.queue,
      ...(binding === undefined ? {} : { binding }),
      maxBatchSize: consumer.max_batch_size,
      maxBatchTimeout: consumer.max_batch_timeout,
      maxRetries: consumer.max_retries,
      ...(dead === undefined ? {} : { deadLetterQueue: dead }),
    };
  });
}

/** Throws ConfigProblem unless the channel has no public address and the bindings that the embedded gateway gives it. */
export function channelFacts(text: string, file: string, name: string): ChannelFacts {
  const config = parse(text, file);
  const must = (holds: boolean, what: string): void => {
    if (!holds) throw new ConfigProblem(`${file}: ${what}.`);
  };
  must(config.name === `gsv-channel-${name}`, `its name must be gsv-channel-${name}`);
  must(config.workers_dev === false && config.routes === undefined, "a channel has no address of its own: workers_dev must be false");
  const objects = config.durable_objects?.bindings ?? [];
  const durableObject = objects.find((binding) => binding.name === "ACCOUNT")?.class_name;
  must(objects.length === 1 && durableObject !== undefined, "its only Durable Object is that of its accounts, bound as ACCOUNT");
  const services = config.services ?? [];
  const toGateway = services.find(({ binding }) => binding === "GATEWAY");
  must(
    services.length === 1 && toGateway?.service === "gsv" && toGateway.entrypoint === "GatewayEntrypoint",
    "its only service is the gateway's GatewayEntrypoint, bound as GATEWAY",
  );
  must(toGateway?.props?.channel === name, `its binding GATEWAY must have the props { "channel": "${name}" }`);
  must(config.r2_buckets === undefined, "a channel has no access to the storage: r2_buckets must be absent");
  return { ...compatibility(text, file), durableObject: durableObject ?? "" };
}

/** Keys that say how a Worker is built. What is deployed is built already. */
const OF_BUILD = new Set([
  "$schema",
  "main",
  "build",
  "no_bundle",
  "find_additional_modules",
  "rules",
  "alias",
  "define",
  "minify",
  "keep_names",
  "env",
]);

/**
 * The configuration of a built Worker, as wrangler deploys it: the outermost settings, then those of `environment`, without those of the
 * build and without services, which depend on the channels that are deployed.
 */
export function deployConfig(text: string, file: string, environment: string): Readonly<Record<string, unknown>> {
  const config = parse(text, file) as Readonly<Record<string, unknown>>;
  const own = environment === "" ? {} : (config["env"] as Readonly<Record<string, object>> | undefined)?.[environment];
  if (own === undefined) throw new ConfigProblem(`${file} has no environment ${environment}.`);
  const isGateway = environment !== "";
  const all = Object.entries({ ...config, ...own });
  return Object.fromEntries(all.filter(([key]) => !OF_BUILD.has(key) && !(isGateway && key === "services")));
}

/** The name of the bucket that a deployed Worker reaches by this binding. Throws ConfigProblem when there is none. */
export function bucketOf(config: Readonly<Record<string, unknown>>, binding: string): string {
  const name = (config as Config).r2_buckets?.find((bucket) => bucket.binding === binding)?.bucket_name;
  if (name === undefined) throw new ConfigProblem(`The Worker has no bucket with the binding ${binding}.`);
  return name;
}

function parse(text: string, file: string): Config {
  try {
    return JSON.parse(withoutComments(text)) as Config;
  } catch (error) {
    throw new ConfigProblem(`${file} cannot be read: ${String(error)}`);
  }
}
