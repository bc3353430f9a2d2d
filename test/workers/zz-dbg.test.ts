import { defineAgent } from '/work/main/src/index.ts'
import { text } from '/work/main/src/testing/index.ts'
import { onEachDatabase } from '/work/main/test/support/databases.ts'
import { useBench } from '/work/main/test/support/mills.ts'
import { until } from '/work/main/test/support/until.ts'
const support = defineAgent({ name: 'support' })
const sales = defineAgent({ name: 'sales' })
const log = (who: string) => { const f = (l: string) => (o: any, t: string) => console.log(Date.now() % 100000, who, l, t, o?.err?.message ?? '', JSON.stringify(o).slice(0, 300)); return { debug: f('debug'), info: f('info'), warn: f('warn'), error: f('error') } }
onEachDatabase('dbg', (kind) => {
  const bench = useBench(kind)
  it('x', async function () {
    this.timeout(60000)
    await bench.script(text('hello'))
    const mon = (await import('node:child_process')).spawn('redis-cli', ['-p', String(bench.redis.port), 'monitor']); mon.stdout.on('data', (d) => { for (const l of String(d).split('\n')) if (/bzpopmin|zadd .*marker|zpopmin|deduplic|"set" .*:de:/i.test(l)) console.log('MON', l.slice(0, 170)) })
    const web = await bench.connect({ agents: [support], logger: log('web') })
    const chat = await web.chats.create({ agent: support })
    await chat.askLater('help', { enqueue: true })
    const read = async () => (await web.models.Chat.findByPk(chat.id))!.get({ plain: true })
    const stranger = await bench.connect({ agents: [sales], logger: log('stranger'), observe: { onStatement: (s: string) => { if (!s.startsWith('SELECT id, claim')) console.log(Date.now() % 100000, 'STR', s.slice(0, 150)) } } })
    await stranger.startWorkers().ready()
    await until('it is put off twice', async () => (await read()).putOff >= 2)
    const colleague = await bench.connect({ agents: [support], logger: log('colleague'), observe: { onStatement: (s: string) => { if (!s.startsWith('SELECT id, claim')) console.log(Date.now() % 100000, 'COL', s.slice(0, 150)) } } })
    await colleague.startWorkers().ready()
    try { await until('answered', async () => (await chat.messages()).at(-1)?.content === 'hello', 8000) } catch (e) { console.log(String(e)) }
    console.log(bench.model.requests.map((r) => [r.startedAt % 100000, (r.endedAt ?? 0) % 100000, r.ended, JSON.stringify(r.messages)]), await read(), (await chat.messages()).map((m) => [m.role, m.content]))
    mon.kill()
    console.log((await web.models.Usage.findAll()).map((u: any) => u.get({ plain: true })).map((u: any) => [u.status, u.claimToken, u.errorCode, u.createdAt.getTime() % 100000]))
  })
})
