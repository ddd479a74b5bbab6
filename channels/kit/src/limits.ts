/** Times and sizes of the kit. Limits of the wire are in the contract. PURE. */
export const KIT = {
  /** First and longest wait between two attempts, with 25 % jitter. */
  retryMinMs: 1_000,
  retryMaxMs: 300_000,
  /** How long the message that shows a generating answer is remembered. */
  liveMaxMs: 86_400_000,
  /** Generating answers that an instance keeps in memory. */
  liveTexts: 200,
  /** A delivery fails visibly after this many attempts, or after this time (promises P9). */
  sendTries: 10,
  sendMaxMs: 86_400_000,
  /** How long the ids of messages and deliveries are remembered. */
  rememberMs: 2_592_000_000,
  /** Queued messages. A delivery beyond that is refused; an inbound message is not acknowledged to the platform. */
  inboxRows: 10_000,
  outboxRows: 10_000,
  /** Queued inbound messages of one conversation; more are counted and dropped. */
  peerRows: 2_500,
  /** Conversations that are served in parallel. */
  peersAtOnce: 8,
  /** Conversations whose first message is looked at together. */
  headRows: 100,
  /** Outcomes of attempts that an instance keeps in memory while they cannot be written. Less than `headRows`, so that blocked conversations never hide the others. */
  unwrittenOutcomes: 50,
  handOverMs: 30_000,
  /**
   * Time limits of a platform. The command line waits 60 s for a start (a connection that begins, disconnect, connect), a stop (disconnect), a
   * logout (logout or a connection that begins, then disconnect) and a login. It must get the answer: `account.unit.test.ts` compares them.
   */
  connectMs: 8_000,
  disconnectMs: 5_000,
  logoutMs: 10_000,
  loginMs: 45_000,
  /** First and longest wait before a further attempt to connect while earlier ones were given up and go on. */
  lateMinMs: 30_000,
  lateMaxMs: 3_600_000,
  /** Time limit of the question whether messages of agents may leave (gateway rule ST9); tries when a stop or a resume overtakes it. */
  askMs: 5_000,
  askTries: 3,
  sendMs: 60_000,
  fileMs: 60_000,
  fileTries: 4,
  liveEveryMs: 1_500,
  typingEveryMs: 8_000,
  typingMaxMs: 120_000,
  /** The alarm interval that keeps the account's Durable Object in memory; an outgoing socket alone does not. */
  residentMs: 30_000,
  /** The lease of work under way; afterwards it is examined again, also by a new instance (promises P12). */
  leaseMs: 30_000,
  /** No new alarm is set for so long after an unexpected error (promises P12). */
  restMs: 30_000,
  /** Rows that one step of pruning removes. */
  pruneRows: 500,
} as const;
