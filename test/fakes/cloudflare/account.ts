/** What one account of the fake has, by the areas of the API. */
import type { Row } from "./api.ts";

export interface Binding {
  readonly name: string;
  readonly type: string;
  readonly [more: string]: unknown;
}
export interface Version {
  readonly id: string;
  readonly number: number;
  readonly message: string;
  readonly bindings: readonly Binding[];
  readonly exports: readonly string[];
  readonly modules: readonly string[];
  /** Of the main module. */
  readonly source: string;
}
export interface Script {
  readonly versions: Version[];
  /** Ids of versions, the newest last. */
  readonly deployments: { readonly version: string; readonly message: string }[];
  readonly secrets: Map<string, string>;
  readonly subdomain: { enabled: boolean; previews_enabled: boolean };
  /** Classes of Durable Objects that have data. */
  readonly namespaces: Set<string>;
}
/** A database of D1. */
export interface Database {
  readonly uuid: string;
  readonly name: string;
}
/** A namespace of KV. */
export interface Namespace {
  readonly id: string;
  readonly title: string;
}
export interface Queue {
  readonly queue_id: string;
  readonly queue_name: string;
  readonly consumers: { readonly consumer_id: string; readonly script: string; readonly [more: string]: unknown }[];
}
/** An index of Vectorize. */
export interface Index {
  readonly name: string;
  readonly config: Row;
  readonly metadata: string[];
}

export interface Account {
  readonly scripts: Map<string, Script>;
  readonly buckets: Map<string, Set<string>>;
  readonly databases: Database[];
  readonly namespaces: Namespace[];
  readonly queues: Queue[];
  readonly indexes: Index[];
  readonly assets: Set<string>;
  /** Of workers.dev. */
  readonly subdomain: string | undefined;
  /** Where the fake answers. */
  readonly port: number;
  script(name: string): Script;
  /** The version that runs. */
  active(name: string): Version | undefined;
}
