import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { queryObjects } from 'node:v8'
import { Queue } from 'bullmq'
import { expect } from 'chai'
import express from 'express'
import type { Browser } from 'playwright-core'
import { type BoardHandler, type Chat, defineAgent, defineTool, type Threadmill } from '../../src/index.ts'
import { httpError, text, toolCalls } from '../../src/testing/index.ts'
import { sqlite } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'

const chromium = '/usr/bin/chromium'
const refund = defineTool({
  name: 'refund',
  description: 'Refunds.',
  parameters: { type: 'object', properties: {} },
  requiresApproval: true,
  execute: () => 'done',
})
const support = defineAgent({ name: 'support', tools: [refund], attempts: 1, retries: 0 })

describe('The board', function () {
  this.timeout(120_000)
  const bench = useBench(sqlite, { claimTtlMs: 30_000 })
  let servers: Server[] = []
  let mill: Threadmill
  beforeEach(async () => {
    mill = await bench.connect({ agents: [support] })
  })
  afterEach(async () => {
    for (const server of servers) {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    }
    servers = []
  })

  async function serve(listener: Parameters<typeof createServer>[1]): Promise<string> {
    const server = createServer(listener)
    servers.push(server)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  it('opens its queues once, however often it is made (E151)', async () => {
    await mill.board()
    const queues = () => queryObjects(Queue, { format: 'count' })
    const before = queues()
    const boards = [await mill.board(), await mill.board({ writable: true })]
    expect(queues()).to.be.at.most(before)
    expect(boards[0]).not.to.equal(boards[1])
  })

  /** A chat that waits for a decision, one that failed, and one that is answered, each run by a worker. */
  async function threeChats(): Promise<{ waiting: Chat; failed: Chat; done: Chat }> {
    const calls = toolCalls([{ id: 'one', name: 'refund', arguments: {} }])
    await bench.script([calls, httpError(401, 'no such key'), text('hello')])
    const working = await bench.connect({ agents: [support] })
    await working.startWorkers({ complete: 1, runTools: 0, compact: 0 }).ready()
    const make = async (state: string) => {
      const chat = await mill.chats.create({ agent: support })
      await chat.askLater('help', { enqueue: true })
      await until(
        `it is ${state}`,
        async () => {
          const now = await chat.diagnosis()
          return now.state === state && now.lastMessage !== null && (state !== 'idle' || (await chat.isComplete()))
        },
        60_000,
      )
      return chat
    }
    return { waiting: await make('parked'), failed: await make('failed'), done: await make('idle') }
  }

  const mounted = async (board: BoardHandler) => `${await serve(express().use('/admin/queues', board))}/admin/queues/`

  it('is mounted anywhere in an application, asks for nothing from elsewhere, and names chats and what jobs came to', async () => {
    const { waiting, failed, done } = await threeChats()
    const url = await mounted(await mill.board({ chatUrl: (chatId) => `/chats/${chatId}` }))
    const page = await fetch(url)
    const html = await page.text()
    expect(page.headers.get('content-security-policy')).to.include("default-src 'none'")
    expect(html).to.include('<base href="/admin/queues/" />')
    expect(html).not.to.match(/https?:\/\//)
    interface Listed {
      readonly queues: {
        name: string
        jobs: { name: string; failedReason?: string; externalUrl?: { href: string } }[]
      }[]
    }
    const listed = await until('all jobs have ended', async () => {
      const response = await fetch(`${url}api/queues?activeQueue=complete&status=latest&page=1&jobsPerPage=50`)
      const { queues } = (await response.json()) as Listed
      // The sweeper may have rung, too.
      const names = queues.flatMap(({ jobs }) => jobs.map(({ name }) => name))
      const ended = [`${waiting.id} · ring · waits`, `${done.id} · ring · done`, `${failed.id} · ring`]
      return ended.every((end) => names.some((name) => name.includes(end))) ? queues : null
    })
    expect(listed.map(({ name }) => name)).to.have.members(['complete', 'runTools', 'compact'])
    const jobs = listed.flatMap((queue) => queue.jobs)
    const of = (chat: Chat) => jobs.find(({ name }) => name.includes(`${chat.id} · ring`))
    expect(of(waiting)?.name).to.equal(`chat ${waiting.id} · ring · waits for a person`)
    expect(of(done)?.name).to.equal(`chat ${done.id} · ring · done`)
    expect(of(failed)?.failedReason).to.include('no such key')
    expect(of(done)?.externalUrl?.href).to.equal(`/chats/${done.id}`)
  })

  it('changes nothing unless it is writable, and then not for the page of another site', async () => {
    const pause = (url: string, headers: Record<string, string>) =>
      fetch(`${url}api/queues/complete/pause`, { method: 'PUT', headers }).then(({ status }) => status)
    const readOnly = await mounted(await mill.board())
    expect(await pause(readOnly, {})).to.equal(405)
    const writable = await mounted(await mill.board({ writable: true }))
    expect(await pause(writable, { origin: 'http://elsewhere.example' })).to.equal(403)
    expect(await pause(writable, {})).to.equal(200)
    await fetch(`${writable}api/queues/complete/resume`, { method: 'PUT' })
  })

  if (!existsSync(chromium)) {
    it(`shows queues and jobs in a browser (left out: there is no ${chromium})`)
    return
  }
  it('shows queues, and jobs of a waiting, a failed and an answered chat, in a browser', async () => {
    const { waiting, failed, done } = await threeChats()
    const url = await mounted(await mill.board())
    const { chromium: driver } = await import('playwright-core')
    const folder = await mkdtemp(join(tmpdir(), 'threadmill-board-'))
    const browser: Browser = await driver.launch({ executablePath: chromium, args: ['--no-sandbox'] })
    try {
      const page = await browser.newPage({ viewport: { width: 1_300, height: 900 } })
      const problems: string[] = []
      const foreign: string[] = []
      page.on('console', (message) => message.type() === 'error' && problems.push(message.text()))
      page.on('pageerror', (error) => problems.push(String(error)))
      page.on('request', (request) => request.url().startsWith(url) || foreign.push(request.url()))
      const limit = { timeout: 60_000 }
      await page.goto(url, limit)
      for (const name of ['complete', 'runTools', 'compact']) await page.getByText(name).first().waitFor(limit)
      await page.goto(`${url}queue/complete`, limit)
      await page.getByText(`chat ${waiting.id} · ring · waits for a person`).first().waitFor(limit)
      await page.getByText(`chat ${done.id} · ring · done`).first().waitFor(limit)
      await page.getByText(`chat ${failed.id}`).first().waitFor(limit)
      await page.getByText('no such key').first().waitFor(limit)
      await page.screenshot({ path: process.env.THREADMILL_TEST_SHOT ?? join(folder, 'board.png') })
      expect({ problems, foreign }).to.deep.equal({ problems: [], foreign: [] })
    } finally {
      await browser.close()
      await rm(folder, { recursive: true, force: true })
    }
  })
})
