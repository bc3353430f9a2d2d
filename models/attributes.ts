import { DataTypes, type ModelAttributeColumnOptions } from 'sequelize'

// How the columns of the tables look to Sequelize; the tables themselves are made by the migrations. Each is made anew:
// Sequelize writes the column's name into the object it is given.

export const idColumn = (): ModelAttributeColumnOptions => ({
  type: DataTypes.STRING(36),
  allowNull: false,
  primaryKey: true,
})
export const idReference = (): ModelAttributeColumnOptions => ({ type: DataTypes.STRING(36) })
export const countColumn = (): ModelAttributeColumnOptions => ({
  type: DataTypes.INTEGER,
  allowNull: false,
  defaultValue: 0,
})
export const numberColumn = (): ModelAttributeColumnOptions => ({ type: DataTypes.INTEGER })
export const wordColumn = (): ModelAttributeColumnOptions => ({ type: DataTypes.STRING(255) })
export const textColumn = (): ModelAttributeColumnOptions => ({ type: DataTypes.TEXT })
export const jsonColumn = (): ModelAttributeColumnOptions => ({ type: DataTypes.JSON })
export const flagColumn = (): ModelAttributeColumnOptions => ({ type: DataTypes.BOOLEAN, allowNull: false })
export const timeColumn = (): ModelAttributeColumnOptions => ({ type: DataTypes.DATE(3) })
/** USD, exact to ten places; read as a string. */
export const moneyColumn = (): ModelAttributeColumnOptions => ({
  type: DataTypes.DECIMAL(16, 10),
})
