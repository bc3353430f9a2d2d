import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { definitions, type MetricDefinition, metricPrefix } from '../../src/observability/metrics/definitions.ts'

const guide = readFileSync(join(import.meta.dirname, '../../docs/guides/observability.md'), 'utf8')

function tableOf(metrics: Readonly<Record<string, MetricDefinition>>): string {
  const rows = Object.entries(metrics).map(([name, { kind, labels, help, alert }]) => {
    const shown = labels.length === 0 ? '' : ` {${labels.join(', ')}}`
    return `| \`${metricPrefix}${name}${shown}\` | ${kind} | ${help} | ${alert ?? ''} |`
  })
  return ['| metric {labels} | kind | what | alert when |', '| --- | --- | --- | --- |', ...rows].join('\n')
}

describe('The guide to observability', () => {
  it('lists every metric as it is defined', () => {
    const listed = /<!-- metrics -->\n([\s\S]*?)\n<!-- \/metrics -->/.exec(guide)?.[1]?.trim()
    expect(listed, `Put this between the comments:\n${tableOf(definitions)}\n`).to.equal(tableOf(definitions))
  })

  it('names every type of observation', () => {
    const source = readFileSync(join(import.meta.dirname, '../../src/observability/observation.ts'), 'utf8')
    const types = [...source.matchAll(/Observed<\s*'([a-z.-]+)'/g)].map(([, type]) => type)
    expect(types.length).to.be.above(20)
    expect(types.filter((type) => !guide.includes(`\`${type}\``))).to.deep.equal([])
  })
})
