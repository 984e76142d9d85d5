# The agent's image. `make docker-build` builds it; VERSION is what `agent --version` prints. `make image` builds it
# without Docker, from what is copied here: package hack/image understands little more than what is there.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
ARG TARGETOS
ARG TARGETARCH
ARG VERSION=unknown
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY Makefile ./
COPY api api
COPY cmd cmd
COPY config/health config/health
COPY internal internal
RUN GOOS=$TARGETOS GOARCH=$TARGETARCH make build WHAT=./cmd/agent BIN=/out VERSION="$VERSION"

FROM scratch AS agent
COPY --from=build /out/agent /agent
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
USER 65532:65532
ENTRYPOINT ["/agent"]
