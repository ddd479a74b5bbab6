/**
 * A shop that speaks the wire of Shopify's Admin GraphQL API: queries are parsed and checked against a part of its schema, errors and
 * throttling have its form, and refunds need an idempotency key. Counts what is asked and what has changed.
 */
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { buildSchema, getDirectiveValues, graphql, type GraphQLResolveInfo } from "graphql";

/** The part of the schema that the pack uses, with the names and types of version 2026-04. */
const schema = buildSchema(`
  directive @idempotent(key: String!) on FIELD
  scalar DateTime
  scalar Decimal
  scalar URL
  enum CurrencyCode { SEK EUR USD }
  enum OrderSortKeys { CREATED_AT ID PROCESSED_AT }
  enum ProductSortKeys { TITLE ID }
  enum OrderTransactionKind { AUTHORIZATION CAPTURE REFUND SALE VOID }
  enum OrderTransactionStatus { SUCCESS PENDING FAILURE ERROR }
  type MoneyV2 { amount: Decimal! currencyCode: CurrencyCode! }
  type MoneyBag { shopMoney: MoneyV2! }
  type PageInfo { hasNextPage: Boolean! endCursor: String }
  type LineItem { title: String! quantity: Int! }
  type LineItemConnection { nodes: [LineItem!]! }
  type OrderTransaction { id: ID! kind: OrderTransactionKind! status: OrderTransactionStatus! gateway: String amountSet: MoneyBag! }
  type Refund { id: ID note: String }
  type Order {
    id: ID! name: String! createdAt: DateTime! email: String displayFinancialStatus: String displayFulfillmentStatus: String
    totalPriceSet: MoneyBag! totalRefundedSet: MoneyBag!
    lineItems(first: Int): LineItemConnection! transactions(first: Int): [OrderTransaction!]! refunds(first: Int): [Refund!]!
  }
  type OrderConnection { nodes: [Order!]! pageInfo: PageInfo! }
  type ProductPriceRangeV2 { minVariantPrice: MoneyV2! }
  type Product { id: ID! title: String! status: String! totalInventory: Int! priceRangeV2: ProductPriceRangeV2! }
  type ProductConnection { nodes: [Product!]! pageInfo: PageInfo! }
  type ShopPlan { publicDisplayName: String! }
  type Shop { name: String! email: String! currencyCode: CurrencyCode! ianaTimezone: String! plan: ShopPlan! }
  type Query {
    shop: Shop!
    order(id: ID!): Order
    orders(first: Int, after: String, query: String, sortKey: OrderSortKeys, reverse: Boolean): OrderConnection!
    products(first: Int, after: String, sortKey: ProductSortKeys): ProductConnection!
  }
  input OrderTransactionInput { orderId: ID! gateway: String! kind: OrderTransactionKind! amount: Decimal! parentId: ID }
  input RefundInput { orderId: ID! note: String transactions: [OrderTransactionInput!] }
  type UserError { field: [String!] message: String! }
  type RefundCreatePayload { refund: Refund order: Order userErrors: [UserError!]! }
  type Mutation { refundCreate(input: RefundInput!): RefundCreatePayload! }
`);

export interface FakeOrder {
  readonly number: number;
  readonly email: string;
  readonly amount: string;
  readonly createdAt: Date;
  readonly item: string;
}
export interface FakeRefund {
  readonly id: string;
  readonly orderId: string;
  readonly amount: string;
  readonly note: string;
  readonly key: string;
}
/** How the next request is answered instead. */
export type Fault = "throttled" | "limited" | "down" | "denied" | "garbage" | "huge" | "moved" | "cut";
export interface FakeShopify {
  readonly url: string;
  readonly token: string;
  /** Money that has moved: once for an idempotency key. */
  readonly refunds: readonly FakeRefund[];
  /** Requests for a refund by idempotency key, also repeated ones. */
  readonly asked: ReadonlyMap<string, number>;
  /** Names of the operations, in order; requests with a fault count. */
  readonly operations: readonly string[];
  faults: Fault[];
  /** The next refund moves money, and its answer never comes. Resolves when it has moved. */
  holdNextRefund(): Promise<void>;
  close(): Promise<void>;
}
const money = (amount: string) => ({ shopMoney: { amount, currencyCode: "SEK" } });
const gid = (type: string, id: number): string => `gid://shopify/${type}/${id}`;
/** `after` is the position of the last item. */
function page<T>(all: readonly T[], first = 50, after?: string | null) {
  const from = after === undefined || after === null ? 0 : Number(after) + 1;
  const nodes = all.slice(from, from + first);
  const last = from + nodes.length - 1;
  return { nodes, pageInfo: { hasNextPage: last + 1 < all.length, endCursor: nodes.length === 0 ? null : String(last) } };
}

export async function startFakeShopify(given: readonly FakeOrder[], productCount = 60): Promise<FakeShopify> {
  const token = "shpat_of_the_fake_shop";
  const refunds: FakeRefund[] = [];
  const asked = new Map<string, number>();
  const operations: string[] = [];
  let held: (() => void) | undefined;
  const state: { faults: Fault[] } = { faults: [] };

  const refundsOf = (orderId: string): readonly FakeRefund[] => refunds.filter((refund) => refund.orderId === orderId);
  const orderOf = ({ number, email, amount, createdAt, item }: FakeOrder) => {
    const id = gid("Order", number);
    const refunded = refundsOf(id).reduce((sum, refund) => sum + Number(refund.amount), 0);
    return {
      id,
      name: `#${number}`,
      createdAt: createdAt.toISOString(),
      email,
      displayFinancialStatus: refunded > 0 ? "PARTIALLY_REFUNDED" : "PAID",
      displayFulfillmentStatus: "FULFILLED",
      totalPriceSet: money(amount),
      totalRefundedSet: money(refunded.toFixed(2)),
      lineItems: { nodes: [{ title: item, quantity: 1 }] },
      transactions: [
        { id: gid("OrderTransaction", number * 10), kind: "AUTHORIZATION", status: "SUCCESS", gateway: "klarna", amountSet: money(amount) },
        { id: gid("OrderTransaction", number * 10 + 1), kind: "CAPTURE", status: "SUCCESS", gateway: "klarna", amountSet: money(amount) },
      ],
      refunds: refundsOf(id),
    };
  };
  const newest = () => [...given].sort((one, other) => other.createdAt.getTime() - one.createdAt.getTime());
  const matches = (order: FakeOrder, query: string): boolean =>
    query.split(" AND ").every((term) => {
      const [, field = "", value = ""] = /^(\w+):(?:>=)?"([^"]*)"$/.exec(term) ?? [];
      if (field === "email") return order.email === value;
      if (field === "name") return `#${order.number}` === `#${value.replace("#", "")}`;
      if (field === "created_at") return order.createdAt.getTime() >= Date.parse(value);
      return false;
    });
  const root = {
    shop: {
      name: "Towels",
      email: "shop@example.com",
      currencyCode: "SEK",
      ianaTimezone: "Europe/Stockholm",
      plan: { publicDisplayName: "Basic" },
    },
    order: ({ id }: { id: string }) => given.filter(({ number }) => gid("Order", number) === id).map(orderOf)[0] ?? null,
    orders: ({ first, after, query = "" }: { first?: number; after?: string; query?: string }) =>
      page(
        newest()
          .filter((order) => matches(order, query))
          .map(orderOf),
        first,
        after,
      ),
    products: ({ first, after }: { first?: number; after?: string }) =>
      page(
        Array.from({ length: productCount }, (_, number) => ({
          id: gid("Product", number),
          title: `Towel ${String(number).padStart(3, "0")}`,
          status: "ACTIVE",
          totalInventory: number,
          priceRangeV2: { minVariantPrice: { amount: "49.00", currencyCode: "SEK" } },
        })),
        first,
        after,
      ),
    refundCreate(
      { input }: { input: { orderId: string; note?: string; transactions?: { amount: string; parentId?: string; kind: string }[] } },
      _context: unknown,
      info: GraphQLResolveInfo,
    ) {
      const directive = schema.getDirective("idempotent");
      const [field] = info.fieldNodes;
      const values = directive && field && getDirectiveValues(directive, field, info.variableValues);
      const key = values?.["key"];
      if (typeof key !== "string") throw new Error("The @idempotent directive is required for this mutation.");
      asked.set(key, (asked.get(key) ?? 0) + 1);
      const known = refunds.find((refund) => refund.key === key);
      if (known !== undefined) return { refund: known, userErrors: [] };
      const order = given.find(({ number }) => gid("Order", number) === input.orderId);
      const [transaction] = input.transactions ?? [];
      if (order === undefined || transaction?.kind !== "REFUND" || transaction.parentId !== gid("OrderTransaction", order.number * 10 + 1))
        return { refund: null, userErrors: [{ field: ["transactions"], message: "The transaction is not valid." }] };
      const sum = refundsOf(input.orderId).reduce((total, refund) => total + Number(refund.amount), Number(transaction.amount));
      if (sum > Number(order.amount))
        return { refund: null, userErrors: [{ field: null, message: "Refund amount exceeds the refundable amount." }] };
      const refund = {
        id: gid("Refund", refunds.length + 1),
        orderId: input.orderId,
        amount: transaction.amount,
        note: input.note ?? "",
        key,
      };
      refunds.push(refund);
      return { refund, userErrors: [] };
    },
  };
  const cost = { requestedQueryCost: 12, throttleStatus: { maximumAvailable: 2000, currentlyAvailable: 11.9, restoreRate: 100 } };
  async function read(request: IncomingMessage): Promise<string> {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    return Buffer.concat(parts).toString("utf8");
  }

  const server: Server = createServer(async (request, response) => {
    const json = (status: number, body: unknown, headers: Record<string, string> = {}): void => {
      response.writeHead(status, { "content-type": "application/json; charset=utf-8", ...headers }).end(JSON.stringify(body));
    };
    const text = await read(request);
    if (request.method !== "POST" || !/^\/admin\/api\/\d{4}-\d{2}\/graphql\.json$/.test(request.url ?? ""))
      return json(404, { errors: "Not Found" });
    if (request.headers["x-shopify-access-token"] !== token)
      return json(401, { errors: "[API] Invalid API key or access token (unrecognized login or wrong password)" });
    const { query, variables } = JSON.parse(text) as { query: string; variables: Record<string, unknown> };
    operations.push(/(?:query|mutation) (\w+)/.exec(query)?.[1] ?? "?");
    switch (state.faults.shift()) {
      case "throttled":
        return json(200, { errors: [{ message: "Throttled", extensions: { code: "THROTTLED" } }], extensions: { cost } });
      case "limited":
        return json(429, { errors: "Exceeded 2 calls per second" }, { "retry-after": "0.1" });
      case "down":
        return json(502, { errors: "Bad Gateway" });
      case "denied":
        return json(200, { errors: [{ message: "Access denied for orders field.", extensions: { code: "ACCESS_DENIED" } }] });
      case "garbage":
        return void response.writeHead(200).end("<html>");
      case "huge":
        return void response.writeHead(200).end(`{"data":"${"x".repeat(3_000_000)}"}`);
      case "moved":
        return void response.writeHead(302, { location: "http://127.0.0.1:1/" }).end();
      case "cut":
        return void response.socket?.resetAndDestroy();
      default:
    }
    const before = refunds.length;
    const result = await graphql({ schema, source: query, rootValue: root, variableValues: variables });
    if (refunds.length > before && held !== undefined) {
      held();
      held = undefined;
      return;
    }
    json(200, { ...result, extensions: { cost } });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    token,
    refunds,
    asked,
    operations,
    get faults() {
      return state.faults;
    },
    set faults(faults) {
      state.faults = faults;
    },
    holdNextRefund: () =>
      new Promise((resolve) => {
        held = resolve;
      }),
    async close() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
