# Threadmill as a program. The app is a file that is mounted, or copied by an image of yours that begins with this one:
#   docker run -v ./app.ts:/srv/app.ts:ro -e DATABASE_URL -e REDIS_URL -e OPENAI_API_KEY threadmill worker --app app.ts

FROM node:20-slim AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY tsconfig.json tsconfig.build.json ./
COPY config ./config
COPY models ./models
COPY src ./src
COPY workers ./workers
RUN npm run build && npm prune --omit=dev

FROM node:20-slim
ENV NODE_ENV=production
WORKDIR /srv
# Beside the app, so that it finds threadmill, and zod, by their names.
COPY --from=build /build/node_modules ./node_modules
COPY --from=build /build/package.json ./node_modules/threadmill/package.json
COPY --from=build /build/dist ./node_modules/threadmill/dist
USER node
STOPSIGNAL SIGTERM
EXPOSE 9464
ENTRYPOINT ["node", "node_modules/threadmill/dist/src/cli/main.js"]
CMD ["worker", "--app", "app.ts", "--probe", "0.0.0.0:9464"]
