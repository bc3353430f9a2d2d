import {
  type DataType,
  Model,
  type ModelAttributeColumnOptions,
  type ModelAttributes,
  type ModelOptions,
  type ModelStatic,
  type Sequelize,
  Utils,
} from 'sequelize'
import { ConfigurationError, ReadOnlyModelError } from '../src/errors.ts'

/** What an application adds to one of the models. */
export interface OwnParts {
  /** Columns; a migration of the application's adds them. They must be nullable, or have a default in the database. */
  readonly attributes?: Readonly<Record<string, DataType | ModelAttributeColumnOptions>> | undefined
  /** Named scopes, for `mill.models.Chat.scope('name')`. */
  readonly scopes?: ModelOptions['scopes']
}

interface Definition {
  readonly sequelize: Sequelize
  readonly name: string
  readonly tableName: string
  readonly own: OwnParts | undefined
  readonly createdAt?: false
  readonly updatedAt?: false
}

/** The class that a model is made of when it needs no methods of its own. */
export const plainModel = (): ModelStatic<Model> => class extends Model {}

/**
 * Makes a model of a class. It stands beside the application's models, not among them: a model of the same name stays
 * theirs, and their `sync` and `drop` leave the table alone. Of their defaults for models none applies.
 * @throws {ConfigurationError} when the application's own parts clash with ours.
 */
export function defineTable(model: ModelStatic<Model>, ours: ModelAttributes, definition: Definition): void {
  const { sequelize, name, tableName, own, createdAt = 'createdAt', updatedAt = 'updatedAt' } = definition
  const added = own?.attributes ?? {}
  const scopes = { ...own?.scopes }
  refuseClashes(model, ours, definition)
  model.init({ ...ours, ...added } as ModelAttributes, {
    sequelize,
    // Only for as long as it is registered: one of the same name would be taken out.
    modelName: `${tableName}/${name}`,
    name: { singular: name, plural: Utils.pluralize(name) },
    tableName,
    underscored: true,
    timestamps: true,
    paranoid: false,
    version: false,
    freezeTableName: true,
    createdAt,
    updatedAt,
    deletedAt: false,
    omitNull: false,
    scopes,
  })
  sequelize.modelManager.removeModel(model)
  Object.defineProperty(model, 'name', { value: name })
}

/** Has every write through a model throw {@link ReadOnlyModelError}: its rows are a record that nobody changes. */
export function refuseWrites(model: ModelStatic<Model>, why: string): void {
  for (const hook of [
    'beforeSave',
    'beforeBulkCreate',
    'beforeBulkUpdate',
    'beforeUpsert',
    'beforeDestroy',
    'beforeBulkDestroy',
  ] as const) {
    model.addHook(hook, 'readOnly', () => {
      throw new ReadOnlyModelError(why)
    })
  }
}

function refuseClashes(model: ModelStatic<Model>, ours: ModelAttributes, { name, own }: Definition): void {
  const columns = new Set(Object.keys(ours).map((key) => Utils.underscoredIf(key, true)))
  for (const [key, attribute] of Object.entries(own?.attributes ?? {})) {
    const options: Partial<ModelAttributeColumnOptions> =
      typeof attribute === 'object' && 'type' in attribute ? attribute : {}
    if (key in ours || columns.has(options.field ?? Utils.underscoredIf(key, true))) {
      throw clash(`${name} has a column ${key} of its own`)
    }
    if (key in model.prototype) throw clash(`${key} is a method or property of every ${name}`)
    if (options.primaryKey === true) throw clash(`${name} has its primary key, so ${key} can't be one`)
  }
  if (own?.scopes !== undefined && 'defaultScope' in own.scopes) {
    throw clash(`${name} can have no defaultScope: Threadmill itself would no longer find its rows`)
  }
}

function clash(problem: string): ConfigurationError {
  return new ConfigurationError(`connect({ extend }) can't be applied: ${problem}. Use another name.`)
}
