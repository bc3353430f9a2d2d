// Imported only when there is something to migrate: umzug takes longer to load than all of this package. A file of its
// own, since a bundler that is given `import('umzug')` loses the names of a CommonJS package.
export { MigrationError, Umzug } from 'umzug'
