/**
 * Persisted state that looks like a plain object: a Proxy over the synchronous key-value storage of a SQLite-backed Durable
 * Object, so that its writes belong to the same transaction as everything else. Each top-level name is one stored value;
 * changing something inside it stores that value again.
 *
 * Reading creates nothing. Names such as `constructor` and `__proto__` are ordinary names without a special meaning.
 * Nothing is cached: every access reads the storage. Queues, ledgers and messages must not be stored here; they are tables.
 */

export type KeyValues = Pick<SyncKvStorage, "get" | "put" | "delete" | "list">;
type Container = Record<string, unknown> | unknown[];

const LIST_MUTATORS: ReadonlySet<string> = new Set(["push", "pop", "shift", "unshift", "splice", "sort", "reverse", "fill", "copyWithin"]);

const isContainer = (value: unknown): value is Container =>
  typeof value === "object" && value !== null && (Array.isArray(value) || isPlain(value));
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** The object whose top-level names are stored under `prefix`. */
export function persistedObject<T extends object>(kv: KeyValues, prefix: string): Partial<T> {
  const read = (name: string | symbol): unknown => (typeof name === "string" ? kv.get(prefix + name) : undefined);
  const view = (name: string): unknown => nested(kv, prefix + name, [], read(name));
  const proxy: unknown = new Proxy(Object.create(null) as Record<string, unknown>, {
    get: (_target, name) => (typeof name === "string" ? view(name) : undefined),
    has: (_target, name) => read(name) !== undefined,
    set(_target, name, value) {
      if (typeof name !== "string") return false;
      if (value === undefined) kv.delete(prefix + name);
      else kv.put(prefix + name, plainCopy(value));
      return true;
    },
    defineProperty(_target, name, descriptor) {
      if (typeof name !== "string" || !("value" in descriptor)) return false;
      kv.put(prefix + name, plainCopy(descriptor.value));
      return true;
    },
    deleteProperty(_target, name) {
      if (typeof name === "string") kv.delete(prefix + name);
      return true;
    },
    ownKeys: () => [...kv.list({ prefix })].map(([key]) => key.slice(prefix.length)),
    getOwnPropertyDescriptor: (_target, name) =>
      typeof name === "string" && read(name) !== undefined
        ? { value: view(name), writable: true, enumerable: true, configurable: true }
        : undefined,
    getPrototypeOf: () => null,
    setPrototypeOf: () => false,
    preventExtensions: () => false,
  });
  return proxy as Partial<T>;
}

/** A plain, detached copy of everything stored under `prefix`, in one read. */
export function snapshot<T extends object>(kv: KeyValues, prefix: string): Partial<T> {
  const entries: unknown = Object.fromEntries([...kv.list({ prefix })].map(([key, value]) => [key.slice(prefix.length), value]));
  return entries as Partial<T>;
}

/** A view of what lies at `path` inside the stored value `key`. Looks it up at each use, so it never writes back stale state. */
function nested(kv: KeyValues, key: string, path: readonly string[], value: unknown): unknown {
  if (!isContainer(value)) return value;
  const load = (): { readonly root: unknown; readonly here: Container } => {
    const root: unknown = kv.get(key);
    let here: unknown = root;
    for (const name of path) here = isContainer(here) ? own(here, name) : undefined;
    if (!isContainer(here)) throw new TypeError("this part of the persisted state has been removed or replaced");
    return { root, here };
  };
  const change = (edit: (here: Container) => boolean): boolean => {
    const { root, here } = load();
    const done = edit(here);
    if (done) kv.put(key, root);
    return done;
  };
  const put = (name: string | symbol, item: unknown): boolean =>
    typeof name === "string" && change((here) => Reflect.defineProperty(here, name, fieldOf(here, name, plainCopy(item))));
  const target: Container = Array.isArray(value) ? [] : (Object.create(null) as Record<string, unknown>);
  return new Proxy(target, {
    get(_target, name) {
      const { here } = load();
      if (typeof name === "string" && Object.hasOwn(here, name)) return nested(kv, key, [...path, name], own(here, name));
      if (!Array.isArray(here)) return undefined;
      const method: unknown = Reflect.get(Array.prototype, name);
      if (typeof name !== "string" || !LIST_MUTATORS.has(name) || typeof method !== "function") return method;
      // Applied to the list and stored once. The result is detached, because a view would show the entry that replaced it.
      return (...args: unknown[]): unknown => {
        const { root, here: list } = load();
        const result: unknown = Reflect.apply(method, list, args.map(plainCopy));
        kv.put(key, root);
        return result;
      };
    },
    has: (_target, name) => Object.hasOwn(load().here, name),
    set: (_target, name, item) => put(name, item),
    defineProperty: (_target, name, descriptor) => ("value" in descriptor ? put(name, descriptor.value) : false),
    deleteProperty: (_target, name) => change((here) => Reflect.deleteProperty(here, name)),
    ownKeys: () => Reflect.ownKeys(load().here),
    getOwnPropertyDescriptor(_target, name) {
      const { here } = load();
      if (typeof name !== "string" || !Object.hasOwn(here, name)) return undefined;
      // A list's length is not configurable, and a proxy must report the same.
      if (Array.isArray(here) && name === "length") return { value: here.length, writable: true, enumerable: false, configurable: false };
      return { value: nested(kv, key, [...path, name], own(here, name)), writable: true, enumerable: true, configurable: true };
    },
    getPrototypeOf: () => (Array.isArray(value) ? Array.prototype : null),
    setPrototypeOf: () => false,
    preventExtensions: () => false,
  });
}

const own = (container: Container, name: string): unknown => (Object.hasOwn(container, name) ? Reflect.get(container, name) : undefined);

function fieldOf(here: Container, name: string, value: unknown): PropertyDescriptor {
  return Array.isArray(here) && name === "length" ? { value } : { value, writable: true, enumerable: true, configurable: true };
}

/** Turns views back into plain values before they are stored; the storage refuses anything that is not plain data. */
function plainCopy(value: unknown): unknown {
  if (!isContainer(value)) return value;
  if (Array.isArray(value)) return Array.from(value, plainCopy);
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, plainCopy(item)]));
}
