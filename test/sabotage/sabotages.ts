// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are code, which has templates in it

// Fourteen mistakes, each made in the product's own code, and each of which has to be found by playing it.

/** A text of a file that is there once, and what is put in its place. */
export interface Edit {
  readonly file: string
  readonly find: string
  readonly put: string
}

export interface Sabotage {
  /** What is done, in the words of the protocol. */
  readonly what: string
  /** What that comes to in the code. */
  readonly how: string
  readonly edits: readonly Edit[]
}

/** By their names. */
export const sabotages: Readonly<Record<string, Sabotage>> = {
  fence: {
    what: 'drop the fence',
    how: 'the first statement of a transaction asks for the chat, and not for the claim',
    edits: [
      {
        file: 'models/claims.ts',
        find: 'WHERE id = $chatId AND ${live(db)}` +\n      (options.unlessCancelled ? ',
        put: 'WHERE id = $chatId AND $claimId IS NOT NULL` +\n      (options.unlessCancelled ? ',
      },
    ],
  },
  revival: {
    what: 'let a lapsed claim be renewed',
    how: 'the renewal asks whose the claim is, and not whether it is live',
    edits: [
      {
        file: 'models/claims.ts',
        find: "SET claimed_until = ${db.dialect.nowPlus('$ttlMs')} WHERE id = $chatId AND ${live(db)}`",
        put: "SET claimed_until = ${db.dialect.nowPlus('$ttlMs')} WHERE id = $chatId AND claimed_by = $claimId`",
      },
    ],
  },
  'late-token': {
    what: 'fence on a token that is read after the take',
    how: 'the claim that a run goes by is read from the row, in a statement behind the take',
    edits: [
      {
        file: 'models/claims.ts',
        find: 'export interface Untaken {\n',
        put: 'export interface Untaken {\n  readonly claimedBy?: string | null\n',
      },
      {
        file: 'models/claims.ts',
        find: '`SELECT agent, claim_token AS claimToken, ',
        put: '`SELECT claimed_by AS claimedBy, agent, claim_token AS claimToken, ',
      },
      {
        file: 'models/claims.ts',
        find: '  return {\n    agent: raw.agent as string | null,\n',
        put: '  return {\n    claimedBy: raw.claimedBy as string | null,\n    agent: raw.agent as string | null,\n',
      },
      {
        file: 'src/claims/claims.ts',
        find: '          const claim = new Claim(chatId, claimId, begun, ',
        put: '          const token = (await rows.untaken(chatId))?.claimedBy ?? claimId\n          const claim = new Claim(chatId, token, begun, ',
      },
    ],
  },
  'wish-cleared': {
    what: 'clear the wish unconditionally',
    how: 'the release sets the wish that the run leaves, whatever was wished for since its last look',
    edits: [
      {
        file: 'models/claims.ts',
        find: '`wanted_at = CASE WHEN wanted_seq <> $seen THEN wanted_at ELSE ${due} END, `',
        put: '`wanted_at = ${due}, `',
      },
    ],
  },
  'no-wish': {
    what: 'ring without a wish in the deciding transaction',
    how: 'a decision is stored and rung for, and its transaction sets no wish',
    edits: [
      { file: 'models/decisions.ts', find: '  await wake(db, decision.chatId, decision.wake, transaction)\n', put: '' },
    ],
  },
  'early-release': {
    what: 'release before the last look',
    how: 'the chat is given back by the wish that the row has then, which the run has not looked into',
    edits: [
      {
        file: 'src/loop/run.ts',
        find: 'const released = await run.ports.rows.release(run.claim, { seen: run.chat.wantedSeq, ',
        put: 'const { chat } = await run.ports.rows.look(run.chat.id)\n  const released = await run.ports.rows.release(run.claim, { seen: chat.wantedSeq, ',
      },
    ],
  },
  'queue-apart': {
    what: 'take the queue outside its transaction',
    how: 'queued messages leave the queue in one transaction, and join the transcript in the next',
    edits: [
      {
        file: 'models/turns.ts',
        find: '    await db.transaction(async (transaction) => {\n      const passed = ',
        put:
          '    await db.transaction(async (early) => {\n      await fence(db, early, key)\n' +
          '      if ((await deleteQueued(db, take.queued, early)) !== take.queued.length) throw new NotApplied()\n    })\n' +
          '    await db.transaction(async (transaction) => {\n      const passed = ',
      },
      {
        file: 'models/turns.ts',
        find: '      if ((await deleteQueued(db, take.queued, transaction)) !== take.queued.length) throw new NotApplied()\n',
        put: '',
      },
    ],
  },
  deaf: {
    what: 'ignore AbortSignal',
    how: 'requests and tools get signals that nothing aborts',
    edits: [
      {
        file: 'src/loop/run-context.ts',
        find: 'return { signal: stop.signal, dispose }',
        put: 'return { signal: new AbortController().signal, dispose }',
      },
      {
        file: 'src/loop/run-tools.ts',
        find: '{ signal, claim: run.claim.signal, timers: run.ports.clock.timers }',
        put: '{ signal, timers: run.ports.clock.timers }',
      },
    ],
  },
  'job-id': {
    what: 'dedupe by fixed job id',
    how: "a ring's job has the chat's id for its own, which one that ended holds; the sweeper's rings are as they were",
    edits: [
      {
        file: 'workers/bell.ts',
        find: 'deduplication: { id: chatId, keepLastIfActive: true, reschedule: true }',
        put: 'jobId: chatId',
      },
    ],
  },
  'deaths-missed': {
    what: 'do not count a process that died',
    how: 'the take leaves the deaths of the chat as they are, though nobody gave it back',
    edits: [{ file: 'models/claims.ts', find: ': `deaths = ${deathsSoFar}`', put: ": 'deaths = deaths'" }],
  },
  'deaths-kept': {
    what: 'keep the deaths that a move should forgive',
    how: 'the first statement of a transaction that commits a move leaves the deaths of the chat as they are',
    edits: [
      {
        file: 'models/claims.ts',
        find: "      (messages > 0 || options.moved ? ', deaths = 0' : '') +\n",
        put: '',
      },
    ],
  },
  'not-alone': {
    what: 'run a chat that kills beside all others',
    how: 'the take asks for as many deaths as there never are',
    edits: [{ file: 'models/claims.ts', find: '< $deathsBelow `', put: '< $deathsBelow + 1000 `' }],
  },
  'not-aside': {
    what: 'never set a chat aside',
    how: 'the job leaves a chat to others that has cost too many processes',
    edits: [
      {
        file: 'workers/job.ts',
        find: '    if (deaths >= setAsideAt) return this.#setAside(chatId, deaths)\n',
        put: '    if (deaths >= setAsideAt && chatId.length === 0) return this.#setAside(chatId, deaths)\n',
      },
    ],
  },
  'result-first': {
    what: 'commit the result before linking it',
    how: "a tool's result is stored in one transaction, and linked to its call in the next",
    edits: [
      {
        file: 'models/turns.ts',
        find: '      if (!(await answerCall(db, result, transaction))) throw new NotApplied()\n      await result.keep?.()\n',
        put:
          '      await result.keep?.()\n    })\n    await db.transaction(async (transaction) => {\n' +
          '      await fence(db, transaction, key)\n      if (!(await answerCall(db, result, transaction))) throw new NotApplied()\n',
      },
    ],
  },
}
