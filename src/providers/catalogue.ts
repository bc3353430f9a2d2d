/** What the catalogue of models knows of one. */
export interface ModelFacts {
  /** How many tokens a request and its answer may have together; null where it isn't known. */
  readonly contextWindow: number | null
}

/**
 * Looks a model up, under its provider's name first and then under any. The catalogue's data is a part of its package and
 * is loaded with the first look; nothing is fetched.
 */
export async function modelFacts(model: string, provider: string): Promise<ModelFacts> {
  const { calcPrice } = await import('@pydantic/genai-prices')
  const nothing = { input_tokens: 0, output_tokens: 0 }
  const found = calcPrice(nothing, model, { providerId: provider }) ?? calcPrice(nothing, model)
  return { contextWindow: found?.model.context_window ?? null }
}
