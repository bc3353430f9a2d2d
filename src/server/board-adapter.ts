import { ExpressAdapter } from '@bull-board/express'

/** The page asks for fonts from elsewhere, and so would tell of everybody who looks at it. */
const foreign = /<link[^>]+href="https?:[^>]*>\s*/g

type EntryRoute = Parameters<ExpressAdapter['setEntryRoute']>[0]

/** Bull Board for Express that finds out by itself where it is mounted. */
export class BoardAdapter extends ExpressAdapter {
  override setEntryRoute(route: EntryRoute): this {
    this.app.disable('x-powered-by')
    this.app[route.method](route.route, (request, response, next) => {
      const { name, params } = route.handler({ basePath: request.baseUrl, uiConfig: this.uiConfig })
      response.render(name, params, (error: Error | null, html?: string) => {
        if (error !== null) next(error)
        else response.type('html').send(html?.replace(foreign, ''))
      })
    })
    return this
  }
}
