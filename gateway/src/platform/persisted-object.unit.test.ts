import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { type KeyValues, persistedObject, snapshot } from "./persisted-object.ts";

/** Storage that keeps copies, like the real one, and counts writes. */
class Memory implements KeyValues {
  readonly map = new Map<string, unknown>();
  writes = 0;
  get<T>(key: string): T | undefined {
    return structuredClone(this.map.get(key)) as T | undefined;
  }
  put<T>(key: string, value: T): void {
    this.writes++;
    this.map.set(key, structuredClone(value));
  }
  delete(key: string): boolean {
    this.writes++;
    return this.map.delete(key);
  }
  *list<T>({ prefix = "" }: { prefix?: string } = {}): Iterable<[string, T]> {
    for (const key of [...this.map.keys()].filter((name) => name.startsWith(prefix)).sort()) yield [key, this.get<T>(key) as T];
  }
}
type Any = Record<string, unknown>;
const make = (): { kv: Memory; object: Any } => {
  const kv = new Memory();
  return { kv, object: persistedObject<Any>(kv, "p:") };
};
const at = (object: Any, name: string): Any => object[name] as Any;

describe("[W20] a persisted object", () => {
  test("reading creates nothing", () => {
    const { kv, object } = make();
    for (const name of ["a", "constructor", "__proto__", "toString", "hasOwnProperty", "then", "toJSON"]) {
      assert.equal(object[name], undefined, name);
      assert.equal(name in object, false, name);
    }
    assert.deepEqual(Object.keys(object), []);
    assert.equal(JSON.stringify(object), "{}");
    assert.equal(kv.writes, 0);
    object["a"] = { b: 1 };
    assert.equal(at(object, "a")["c"], undefined);
    assert.equal(kv.writes, 1);
  });

  test("names with a meaning in JavaScript are ordinary names", () => {
    for (const name of ["constructor", "__proto__", "prototype", "toString", "hasOwnProperty", "length", "then"]) {
      const { kv, object } = make();
      object[name] = { [name]: { x: 1 } };
      at(at(object, name), name)["y"] = 2;
      assert.deepEqual(kv.get(`p:${name}`), JSON.parse(`{"${name}":{"x":1,"y":2}}`), name);
      assert.deepEqual(Object.keys(object), [name]);
      assert.equal(Reflect.get({}, "y"), undefined);
      assert.equal(delete object[name], true);
      assert.deepEqual(Object.keys(object), []);
    }
  });

  test("a nested change is stored and never writes back a value that was replaced meanwhile", () => {
    const { kv, object } = make();
    object["list"] = [{ id: 1 }];
    const list = object["list"] as { id: number }[];
    list.push({ id: 2 });
    (list[0] as { id: number }).id = 7;
    assert.deepEqual(kv.get("p:list"), [{ id: 7 }, { id: 2 }]);
    assert.deepEqual(list.splice(0, 1), [{ id: 7 }]);
    assert.deepEqual(kv.get("p:list"), [{ id: 2 }]);
    const old = at({ ...object }, "list");
    object["list"] = "gone";
    assert.throws(() => {
      old["0"] = 1;
    }, TypeError);
    assert.equal(kv.get("p:list"), "gone");
  });

  test("views can be stored again, spread, listed and turned into JSON", () => {
    const { kv, object } = make();
    object["a"] = { b: [1, { c: 2 }] };
    object["copy"] = object["a"];
    at(object, "copy")["b"] = 0;
    assert.deepEqual(kv.get("p:a"), { b: [1, { c: 2 }] });
    assert.equal(JSON.stringify(object), '{"a":{"b":[1,{"c":2}]},"copy":{"b":0}}');
    assert.ok(Array.isArray(at(object, "a")["b"]));
    assert.deepEqual(snapshot(kv, "p:"), { a: { b: [1, { c: 2 }] }, copy: { b: 0 } });
    assert.deepEqual(snapshot(kv, "other:"), {});
  });

  test("behaves like a plain object", () => {
    const name = fc.constantFrom("a", "b", "constructor", "__proto__");
    const value = fc.oneof(fc.integer(), fc.constant(undefined), fc.dictionary(name, fc.integer(), { maxKeys: 3, noNullPrototype: true }));
    const step = fc.oneof(
      fc.tuple(fc.constant("set" as const), name, value),
      fc.tuple(fc.constant("delete" as const), name, fc.constant(undefined)),
      fc.tuple(fc.constant("inner" as const), name, fc.integer()),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
        const { object } = make();
        const plain = new Map<string, unknown>();
        for (const [what, key, item] of steps) {
          if (what === "set") {
            object[key] = item;
            if (item === undefined) plain.delete(key);
            else plain.set(key, structuredClone(item));
          } else if (what === "delete") {
            delete object[key];
            plain.delete(key);
          } else {
            const inner = plain.get(key);
            if (typeof inner !== "object" || inner === null) continue;
            Object.defineProperty(inner, "z", { value: item, enumerable: true, configurable: true, writable: true });
            at(object, key)["z"] = item;
          }
        }
        assert.deepEqual(JSON.parse(JSON.stringify(object)), JSON.parse(JSON.stringify(Object.fromEntries([...plain].sort()))));
      }),
      { numRuns: 5000 },
    );
  });
});
